"""Access analysis: the reads of a node's kernel rule, resolved symbolically through views to values in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

from graphc.base.dtypes import int8
from graphc.base.records import dataclass
from graphc.base.sizes.size import hint
from graphc.ir.graph.graph import CONSTANT, INPUT, Node, Value, has_sizes
from graphc.ir.kernel.index import Axis, Dynamic, Index, IndexLike, as_index, atoms
from graphc.ir.kernel.lowering import OperandRef
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.kernel.statements import Guard
from graphc.ir.op import Trait
from graphc.ir.types import TensorType


@dataclass
class Access:
    """One read of ``value`` at ``index``, expressed in the axes of the reader's domain.

    NOTE: not frozen, which takes three times as long to create; fusion makes one for each operand of each node.
    """

    value: Value
    index: tuple[Index, ...]
    guarded: bool = False
    """Whether a condition decides if memory is read (padding, concatenation)."""
    dynamic: bool = False
    """Whether the index is data (gather)."""
    replicating: bool = False
    """Whether an element may be read several times (broadcast), for the expected sizes at least."""

    @property
    def plain(self) -> bool:
        """Whether the read is plain index arithmetic."""
        return not self.guarded and not self.dynamic


class AccessRecorder:
    """A LowerContext that records the reads of a kernel rule and computes nothing."""

    def __init__(self, node: Node):
        self.nest = NestBuilder()
        self.type: TensorType = node.results[0].type
        self.reads: list[tuple[int, tuple[Index, ...], Guard]] = []

    def load(self, operand: OperandRef, index: Sequence[IndexLike], guard: Guard = (), other: Any = 0) -> Scalar:
        """Record the read."""
        full = tuple(as_index(i) for i in index)
        self.reads.append((operand.position, full, guard))
        return Scalar(self.nest, self.nest.fresh("read"), operand.dtype)

    def broadcast(self, operand: OperandRef, index: Sequence[Index]) -> Scalar:
        """Record the read of a broadcast operand."""
        return self.load(operand, broadcast_index(operand.shape, index))


def broadcast_index(shape: tuple[int, ...], index: Sequence[Index]) -> tuple[Index, ...]:
    """Return the index into an operand of ``shape`` when it is broadcast to the result indexed by ``index``."""
    trailing = tuple(index)[len(index) - len(shape) :]
    return tuple(Index() if extent == 1 else i for extent, i in zip(shape, trailing, strict=True))


def domain_axes(shape: tuple[int, ...]) -> tuple[Index, ...]:
    """Return one axis per dimension, as indices (dimensions of extent 1 give the constant 0)."""
    for extent in shape:
        if type(extent) is not int:
            return tuple(as_index(Axis(f"d{i}", extent)) for i, extent in enumerate(shape))
    return _axes_of_numbers(shape)


@lru_cache(4096)
def _axes_of_numbers(shape: tuple[int, ...]) -> tuple[Index, ...]:
    return tuple(as_index(Axis(f"d{i}", extent)) for i, extent in enumerate(shape))


_VIRTUAL = Trait.VIEW | Trait.GENERATOR | Trait.STATE_WRITE
_MAYBE_VIRTUAL = _VIRTUAL | Trait.CONVERSION


def is_virtual(node: Node) -> bool:
    """Check whether a node needs no memory of its own: views, generators, scalar constants, results of state writes,
    widened narrow weights, scalars that follow from the sizes of a call."""
    op = node.op
    if op.has_any(_MAYBE_VIRTUAL):
        if op.has_any(_VIRTUAL) and op is not INPUT and not _stored_constant(node):
            return True
        if is_widening(node):
            return True
    return not node.results[0].type.shape and is_of_sizes(node)


def is_widening(node: Node) -> bool:
    """Check for the conversion of a value stored narrow (see passes.precision); every reader does it itself."""
    if not node.op.has(Trait.CONVERSION):
        return False
    source = node.operands[0]
    return _is_stored_half(source) or (source.dtype is int8 and source.node.op in (INPUT, CONSTANT))


def _is_stored_half(value: Value) -> bool:
    """Check for narrow floats in memory. Values rounded by the graph itself do not count: each read would round them
    again."""
    if value.dtype.kind != "h":
        return False
    while value.node.op.has(Trait.VIEW) and value.node.operands:
        value = value.node.operands[0]
    return not value.node.op.has(Trait.CONVERSION)


def is_of_sizes(node: Node) -> bool:
    """Check for a scalar computed only from sizes known at run time, such as the divisor of a mean; every reader
    computes it itself."""
    if node.results[0].shape or node.op is INPUT or node.op is CONSTANT:
        return False
    if not node.op.has(Trait.ELEMENTWISE):
        return node.op.has(Trait.GENERATOR) and has_sizes(node)
    is_any_computed = False
    for value in node.operands:
        if value.node.op is not CONSTANT:
            if not is_of_sizes(value.node):
                return False
            is_any_computed = True
    return is_any_computed


def written_value(value: Value) -> Value:
    """Return the value itself or, for the result of a state write, the written value."""
    while value.node.op.has(Trait.STATE_WRITE):
        value = value.node.operands[1]
    return value


def _stored_constant(node: Node) -> bool:
    return node.op is CONSTANT and bool(node.results[0].shape)


def operand_reads(node: Node, index: tuple[Index, ...]) -> list[Access]:
    """Return the reads by which the node's kernel rule computes the result at ``index``."""
    return accesses(node, read_records(node, index))


ReadRecord = tuple[int, tuple[Index, ...], bool, bool, bool]
"""Operand of a read, and the fields of ``Access`` after the value."""


def read_records(node: Node, index: tuple[Index, ...]) -> list[ReadRecord]:
    """Return the same reads as records, which hold for nodes of the same op with equal types and attributes."""
    larger = hint(node.results[0].type.size)
    return [
        (p, i, bool(guard), is_dynamic(i), larger > max(1, hint(node.operands[p].type.size)))
        for p, i, guard in guarded_reads(node, index)
    ]


def accesses(node: Node, records: Sequence[ReadRecord]) -> list[Access]:
    """Return the reads of a node."""
    operands = node.operands
    return [Access(operands[p], i, guarded, dynamic, replicating) for p, i, guarded, dynamic, replicating in records]


def guarded_reads(node: Node, index: tuple[Index, ...]) -> list[tuple[int, tuple[Index, ...], Guard]]:
    """Return the same reads as (operand, its index, its condition), in the order of the rule."""
    return recorded(node, index).reads


def recorded(node: Node, index: tuple[Index, ...]) -> AccessRecorder:
    """Record how the node's kernel rule computes the result at ``index``."""
    recorder = AccessRecorder(node)
    refs = [OperandRef(i, v.type) for i, v in enumerate(node.operands)]
    assert node.op.lower is not None, f"{node.op.name} has no kernel rule"
    node.op.lower(recorder, index, *refs, **node.attrs)
    return recorder


def is_dynamic(index: tuple[Index, ...]) -> bool:
    """Check whether an index depends on data."""
    return any([isinstance(a, Dynamic) for i in index if i.terms for a in atoms(i)])


def look_through_views(
    value: Value, index: tuple[Index, ...], stop: Collection[Node] = (), above: Access | None = None
) -> list[Access]:
    """Resolve a read of ``value`` at ``index`` to reads of stored or computed values. Virtual nodes are looked through
    unless they are in ``stop``. Properties of the access ``above`` hold for all of them."""
    flags = (above.guarded, above.dynamic, above.replicating) if above else ()
    resolved: list[Access] = []
    stack = [Access(value, index, *flags)]
    while stack:
        access = stack.pop()
        node = access.value.node
        if node in stop or not is_virtual(node):
            resolved.append(access)
        elif node.op is not CONSTANT:
            reads = operand_reads(node, access.index)
            stack.extend(
                Access(
                    read.value,
                    read.index,
                    access.guarded or read.guarded,
                    access.dynamic or read.dynamic,
                    access.replicating or read.replicating,
                )
                for read in reversed(reads)
            )
    return resolved
