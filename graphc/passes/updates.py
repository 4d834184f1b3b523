"""Update chains: values equal to another value with some elements replaced, and contents of a state over time."""

from __future__ import annotations

from collections.abc import Container

from graphc.ir.graph.graph import CONSTANT, Node, Value
from graphc.ir.kernel.index import flatten
from graphc.ir.op import Trait
from graphc.ir.types import row_major_strides
from graphc.passes.operand_access import domain_axes, is_virtual, operand_reads, written_value


def contents_of(value: Value, state: Value) -> list[list[Value]]:
    """Return the successive contents of a state until it holds ``value``, newest first. Each content is a list of its
    aliases under other shapes, the computed one last; the last content is ``state``. Empty where ``value`` is not the
    state with elements replaced."""
    contents: list[list[Value]] = [[]]
    present: Value | None = value
    while present is not None:
        contents[-1].append(present)
        if present is state:
            return contents
        before = updated(present)
        if before is not None:
            contents.append([])
        present = unmoved(present) if before is None else before
    return []


def stored_content(write: Node) -> Value:
    """Return the value to store for a state write: the written value or, for an update of the state, its computed
    alias."""
    contents = contents_of(write.operands[1], write.operands[0])
    return contents[0][-1] if len(contents) > 1 else written_value(write.operands[1])


def updated(value: Value) -> Value | None:
    """Return the operand of which a value replaces some elements; a scan does so where each of its steps does."""
    node = value.node
    if node.op.updates is not None:
        return node.operands[node.op.updates]
    if not node.op.has(Trait.LOOP) or value.index >= node.attrs["carries"]:
        return None
    body = node.attrs["body"]
    stepwise = len(contents_of(body.outputs[value.index], body.inputs[value.index])) > 1
    return node.operands[value.index] if stepwise else None


def unmoved(value: Value) -> Value | None:
    """Return the operand of a view if it has the same elements in the same order."""
    node = value.node
    if not is_virtual(node) or node.op is CONSTANT:
        return None
    here = domain_axes(value.shape)
    reads = operand_reads(node, here)
    if len(reads) != 1 or not reads[0].plain:
        return None
    source = reads[0].value
    if source.dtype is not value.dtype or source.type.size != value.type.size:
        return None
    source_offset, view_offset = (
        flatten(i, row_major_strides(v.shape)) for i, v in ((reads[0].index, source), (here, value))
    )
    return source if source_offset == view_offset else None


def lying(value: Value, placed: Container[Value]) -> Value | None:
    """Return the value itself where it is in memory, or the stored value with its elements in the same order."""
    present: Value | None = value
    while present is not None and present not in placed:
        present = unmoved(present)
    return present
