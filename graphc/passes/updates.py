"""Updates: values that are another value with some elements replaced, and what a state holds one after the other."""

from __future__ import annotations

from collections.abc import Container

from graphc.ir.graph.graph import CONSTANT, Node, Value
from graphc.ir.kernel.index import flatten
from graphc.ir.op import Trait
from graphc.ir.types import row_major_strides
from graphc.passes.operand_access import domain_axes, is_virtual, operand_reads, written_value


def contents_of(value: Value, state: Value) -> list[list[Value]]:
    """What a state holds one after the other until it holds ``value``, the newest content first, each by all its names
    (under other shapes), the last of which is the one that is computed; the last content is ``state``. Empty where
    ``value`` is not the state with elements replaced."""
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
    """What has to lie in memory for a state write: the value that is written, or, where that is an update of the state,
    what was computed of it, under whatever shape."""
    contents = contents_of(write.operands[1], write.operands[0])
    return contents[0][-1] if len(contents) > 1 else written_value(write.operands[1])


def updated(value: Value) -> Value | None:
    """The operand of which some elements are replaced in a value; a scan does so where each of its steps does."""
    node = value.node
    if node.op.updates is not None:
        return node.operands[node.op.updates]
    if not node.op.has(Trait.LOOP) or value.index >= node.attrs["carries"]:
        return None
    body = node.attrs["body"]
    stepwise = len(contents_of(body.outputs[value.index], body.inputs[value.index])) > 1
    return node.operands[value.index] if stepwise else None


def unmoved(value: Value) -> Value | None:
    """The operand of a view whose elements are those of the view in the same order."""
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
    at, place = (flatten(i, row_major_strides(v.shape)) for i, v in ((reads[0].index, source), (here, value)))
    return source if at == place else None


def lying(value: Value, placed: Container[Value]) -> Value | None:
    """The value itself where it lies in memory, or what does so and has its elements in the same order."""
    present: Value | None = value
    while present is not None and present not in placed:
        present = unmoved(present)
    return present
