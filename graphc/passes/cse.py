"""Common subexpression elimination (CSE): compute equal applications of pure ops once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from graphc.base.records import dataclass
from graphc.ir.graph.graph import Graph, Node, Value, attr_key
from graphc.ir.graph.interpret import Reemitter
from graphc.ir.op import OpDef, Trait
from graphc.passes.base import PassResult


@dataclass(frozen=True)
class CommonSubexpressionElimination:
    """Merge nodes that compute the same values.

    Needs: any valid graph. Does: replaces a pure node by an earlier one with the same op, attributes and operands (for
    commutative ops the first two in any order), and merges equal constants. Leaves: the first node, its name and
    location.

        %a = add(%x, %y) : f32[4]
        %b = add(%y, %x) : f32[4]      ->        %a = add(%x, %y) : f32[4]
        return %a, %b                            return %a, %a
    """

    name: str = "cse"

    def run(self, graph: Graph) -> PassResult:
        """Count merged nodes."""
        first = _first_equals(graph)
        return PassResult(_Merger(first).transform(graph) if first else graph, len(first))


def _first_equals(graph: Graph) -> dict[Node, Node]:
    """Return the nodes that compute what an earlier node computes, each with the first such node."""
    present: dict[Any, Node] = {}
    first: dict[Node, Node] = {}
    pure = {op for op in {n.op for n in graph.nodes()} if op.has(Trait.PURE)}
    for node in graph.nodes():
        if node.op not in pure:
            continue
        operands: Sequence[Value] = node.operands
        if first:
            operands = [first[v.node].results[v.index] if v.node in first else v for v in operands]
        earlier = present.setdefault(_key(node, operands), node)
        if earlier is not node:
            first[node] = earlier
    return first


def _key(node: Node, operands: Sequence[Value]) -> tuple[OpDef, tuple[Value, ...], tuple[Hashable, ...]]:
    """Return the key of an application; applications with equal keys compute the same values."""
    op = node.op
    if op.has(Trait.COMMUTATIVE) and len(operands) > 1:
        first, second = operands[:2]
        if (second.node.id, second.index) < (first.node.id, first.index):
            operands = (second, first, *operands[2:])
    return op, tuple(operands), attr_key(node.attrs)


class _Merger(Reemitter):
    """Rewriter that copies the first of equal nodes only."""

    def __init__(self, first: dict[Node, Node]):
        super().__init__()
        self.first = first

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        earlier = self.first.get(node)
        return self.copy_node(node, operands) if earlier is None else [self.values[r] for r in earlier.results]
