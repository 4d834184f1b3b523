"""Prices of ops: what computing an element again costs, from the operations of which an op's kernel rule is made."""

from __future__ import annotations

from collections.abc import Hashable

from graphc.ir.graph.graph import Node, attr_key
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.kernel.statements import Let, walk
from graphc.ir.op import Trait
from graphc.passes.operand_access import domain_axes, operand_reads, recorded

_known: dict[Hashable, tuple[str, ...]] = {}
"""Operations of rules by op, attributes and element types."""


def weight(node: Node, least: int = 1) -> int:
    """Vector operations per element of a node: its op's own number, else that of the operations of its rule that need
    many; ``least`` where there are none."""
    if node.op.cost is not None:
        return node.op.cost
    return max(least, sum(SCALAR_OPS[name].cost for name in _operations(node)))


def is_slow(node: Node) -> bool:
    """Whether computing an element takes longer than writing it to a near cache and reading it again: what is dear, a
    division, a root, or a read at a place that depends on data."""
    if node.op.cost is not None or _reads_anywhere(node):
        return True
    return any(SCALAR_OPS[name].cost or SCALAR_OPS[name].slow for name in _operations(node))


def _reads_anywhere(node: Node) -> bool:
    if node.op.lower is None or node.op.has_any(_ORDERLY):
        return False
    return any(read.dynamic for read in operand_reads(node, domain_axes(node.results[0].shape)))


_ORDERLY = Trait.ELEMENTWISE | Trait.VIEW | Trait.GENERATOR | Trait.REDUCTION | Trait.CONTRACTION
"""Ops that read at places that follow from the place in the result."""


def _operations(node: Node) -> tuple[str, ...]:
    """The operations of the kernel rule of an elementwise op."""
    if node.op.lower is None or not node.op.has(Trait.ELEMENTWISE):
        return ()
    types = tuple(v.dtype.name for v in (*node.operands, *node.results))
    key = node.op, attr_key(node.attrs), types
    if key not in _known:
        body = recorded(node, domain_axes(node.results[0].shape)).nest.body()
        _known[key] = tuple(s.op for s, _ in walk(body) if isinstance(s, Let))
    return _known[key]
