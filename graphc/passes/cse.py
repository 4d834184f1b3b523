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
        keys = [_key(node, node.operands) for node in graph.nodes() if node.op.has(Trait.PURE)]
        if len(set(keys)) == len(keys):
            return PassResult(graph, 0)
        merger = _Merger()
        return PassResult(merger.transform(graph), merger.merged)


def _key(node: Node, operands: Sequence[Value]) -> tuple[OpDef, tuple[Value, ...], tuple[Hashable, ...]]:
    """Return the key of an application; applications with equal keys compute the same values."""
    order = list(operands)
    if node.op.has(Trait.COMMUTATIVE):
        order[:2] = sorted(order[:2], key=lambda v: (v.node.id, v.index))
    return node.op, tuple(order), attr_key(node.attrs)


class _Merger(Reemitter):
    """Rewriter that copies each distinct node once."""

    def __init__(self) -> None:
        super().__init__()
        self.copies: dict[Any, Sequence[Value]] = {}
        self.merged = 0

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        if not node.op.has(Trait.PURE):
            return self.copy_node(node, operands)
        key = _key(node, operands)
        results = self.copies.get(key)
        if results is None:
            results = self.copies[key] = self.copy_node(node, operands)
        else:
            self.merged += 1
        return results
