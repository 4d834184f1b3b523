"""Prices of ops: the cost of computing an element again, from the operations of the op's kernel rule."""

from __future__ import annotations

from collections.abc import Hashable

from graphc.ir.graph.graph import Node, attr_key
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.kernel.statements import Let, walk
from graphc.ir.op import Trait
from graphc.passes.operand_access import domain_axes, operand_reads, recorded

_rule_operations: dict[Hashable, tuple[str, ...]] = {}
"""Operations of rules by op, attributes and element types."""


def weight(node: Node, least: int = 1) -> int:
    """Return the vector operations per element of a node: ``op.cost`` if set, else the summed cost of the operations
    in its kernel rule, but at least ``least``."""
    if node.op.cost is not None:
        return node.op.cost
    return max(least, sum(SCALAR_OPS[name].cost for name in _operations(node)))


def is_slow(node: Node) -> bool:
    """Check whether computing an element takes longer than writing it to a near cache and reading it back.

    Slow are ops with a cost, divisions, roots, and reads at positions that depend on data.
    """
    if node.op.cost is not None or _reads_anywhere(node):
        return True
    return any(SCALAR_OPS[name].cost or SCALAR_OPS[name].slow for name in _operations(node))


def _reads_anywhere(node: Node) -> bool:
    if node.op.lower is None or node.op.has_any(_STATIC_READS):
        return False
    return any(read.dynamic for read in operand_reads(node, domain_axes(node.results[0].shape)))


_STATIC_READS = Trait.ELEMENTWISE | Trait.VIEW | Trait.GENERATOR | Trait.REDUCTION | Trait.CONTRACTION
"""Ops that read at positions which follow from the position in the result."""


def _operations(node: Node) -> tuple[str, ...]:
    """Return the scalar operations in the kernel rule of an elementwise op; none for other ops."""
    if node.op.lower is None or not node.op.has(Trait.ELEMENTWISE):
        return ()
    types = tuple(v.dtype.name for v in (*node.operands, *node.results))
    key = node.op, attr_key(node.attrs), types
    if key not in _rule_operations:
        body = recorded(node, domain_axes(node.results[0].shape)).nest.body()
        _rule_operations[key] = tuple(s.op for s, _ in walk(body) if isinstance(s, Let))
    return _rule_operations[key]
