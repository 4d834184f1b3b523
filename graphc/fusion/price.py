"""Prices of ops: what computing an element again costs, from the operations of which an op's kernel rule is made."""

from __future__ import annotations

from collections.abc import Hashable

from graphc.ir.graph.graph import Node, attr_key
from graphc.ir.kernel.statements import Let, walk
from graphc.ir.op import Trait
from graphc.passes.operand_access import domain_axes, probed

WEIGHTS = {
    "exp": 12,
    "expm1": 20,
    "log": 20,
    "log1p": 24,
    "exp2": 12,
    "log2": 25,
    "log10": 25,
    "sinh": 25,
    "cosh": 15,
    "asinh": 50,
    "acosh": 60,
    "atanh": 50,
    "tanh": 20,
    "erfc": 35,
    "tan": 50,
    "logaddexp": 40,
    "erf": 30,
    "sin": 30,
    "cos": 30,
    "atan": 25,
    "asin": 35,
    "acos": 35,
    "atan2": 35,
    "pow": 80,
    "exact_log": 35,
    "exact_exp": 30,
    "exact_cosine": 40,
    "exact_sine": 40,
    "random_bits": 120,
}
"""Vector operations of operations, of kernels and of graphs, that need many."""
_SLOW = {"sqrt", "div", *WEIGHTS}
"""Operations that cost more than writing and reading one element of a row."""
_known: dict[Hashable, tuple[str, ...]] = {}
"""Operations of rules by op, attributes and element types."""


def weight(node: Node, least: int = 1) -> int:
    """Vector operations per element of a node: its op's own number, else that of the operations of its rule that need
    many; ``least`` where there are none."""
    known = WEIGHTS.get(node.op.name)
    return known if known is not None else max(least, sum(WEIGHTS.get(name, 0) for name in _operations(node)))


def is_slow(node: Node) -> bool:
    """Whether computing an element takes longer than writing it to a near cache and reading it again."""
    return node.op.name in _SLOW or node.op.name == "gather" or not _SLOW.isdisjoint(_operations(node))


def _operations(node: Node) -> tuple[str, ...]:
    """The operations of the kernel rule of an elementwise op."""
    if node.op.lower is None or not node.op.has(Trait.ELEMENTWISE):
        return ()
    types = tuple(v.dtype.name for v in (*node.operands, *node.results))
    key = node.op.name, attr_key(node.attrs), types
    if key not in _known:
        body = probed(node, domain_axes(node.results[0].shape)).nest.body()
        _known[key] = tuple(s.op for s, _ in walk(body) if isinstance(s, Let))
    return _known[key]
