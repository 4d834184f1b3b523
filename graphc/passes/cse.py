"""Common subexpression elimination: equal applications of pure ops are computed once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from graphc.ir.graph.graph import Graph, Node, Value, attr_key
from graphc.ir.graph.interpret import Reemitter
from graphc.ir.op import OpDef, Trait
from graphc.passes.base import PassResult


@dataclass(frozen=True)
class CommonSubexpressionElimination:
    """Merges nodes that compute the same.

    Needs: any valid graph. Does: replaces a pure node by an earlier one with the same op, attributes and operands (for
    commutative ops the first two in any order); equal constants too. Leaves: the first node, its name and location.

        %a = add(%x, %y) : f32[4]
        %b = add(%y, %x) : f32[4]      ->        %a = add(%x, %y) : f32[4]
        return %a, %b                            return %a, %a
    """

    name: str = "cse"

    def run(self, graph: Graph) -> PassResult:
        """Counts the nodes that were merged into others."""
        keys = [_key(node, node.operands) for node in graph.nodes() if node.op.has(Trait.PURE)]
        if len(set(keys)) == len(keys):
            return PassResult(graph, 0)
        merger = _Merger()
        return PassResult(merger.transform(graph), merger.merged)


def _key(node: Node, operands: Sequence[Value]) -> tuple[OpDef, tuple[Value, ...], tuple[Hashable, ...]]:
    """Equal for applications that compute the same."""
    order = list(operands)
    if node.op.has(Trait.COMMUTATIVE):
        order[:2] = sorted(order[:2], key=lambda v: (v.node.id, v.index))
    return node.op, tuple(order), attr_key(node.attrs)


class _Merger(Reemitter):
    """Copies each different node once."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[Any, Sequence[Value]] = {}
        self.merged = 0

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        if not node.op.has(Trait.PURE):
            return self.copy_node(node, operands)
        key = _key(node, operands)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self.copy_node(node, operands)
        else:
            self.merged += 1
        return found
