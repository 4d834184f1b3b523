"""Products with bf16 factors: round the factors of large f32 products to bf16 and pair them; sums stay f32."""

from __future__ import annotations

from typing import Any

from graphc.base.dtypes import float32
from graphc.base.records import dataclass
from graphc.base.sizes.size import is_size
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.graph.rewrite import Rule, apply_rules
from graphc.ir.op import Trait
from graphc.ops.contraction.matrix_product import bf16_pairs
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.movement.shape import pad
from graphc.passes.base import PassResult

SMALLEST = 1 << 16
"""Fewest multiply-adds of a product that is worth rounding."""


@dataclass(frozen=True)
class NarrowProducts:
    """Round the factors of matrix products and convolutions to bf16, two neighbours along the summed axis in a word.

    Needs: a graph that is not differentiated any more, with gradients of convolutions decomposed. Does: gives f32
    products with at least SMALLEST multiply-adds paired factors, padded with a zero where the number of elements is
    odd. Leaves: f32 sums and results; products of sizes known only at run time and convolutions in groups of an odd
    number of channels are unchanged.

        %y = matmul(%x, %w) {transpose_b=true}    ->    %p = bf16_pairs(%x) {axis=1}
                                                        %q = bf16_pairs(%w) {axis=1}
                                                        %y = matmul(%p, %q) {transpose_b=true}
    """

    name: str = "narrow-products"

    def run(self, graph: Graph) -> PassResult:
        """Change the graph in place; count products."""
        reasons: list[str] = []

        def rewrite(graph: Graph, node: Node) -> Value | None:
            axes = _axes(node)
            if axes is None:
                return None
            pairs = [_paired(graph, node, x, axis) for x, axis in zip(node.operands, axes, strict=True)]
            (product,) = emit(graph, node.op, pairs, node.attrs, node.location)
            reasons.append(f"{node.results[0].name}: {node.op.name} of pairs of bf16, sums of f32")
            return product

        return PassResult(graph, apply_rules(graph, [Rule(Trait.CONTRACTION, rewrite, self.name)]), tuple(reasons))


def _axes(node: Node) -> tuple[int, int] | None:
    """Return the axis of each operand along which neighbours become pairs; None for a product that stays unchanged."""
    types = tuple(x.type for x in (*node.operands, *node.results))
    if node.op.pairs is None or types[0].dtype is not float32 or any(is_size(n) for t in types for n in t.shape):
        return None
    return node.op.pairs(types[:2], node.attrs) if _multiply_adds(node) >= SMALLEST else None


def _multiply_adds(node: Node) -> int:
    assert node.op.multiply_adds is not None
    return node.op.multiply_adds(tuple(x.type for x in node.operands), (node.results[0].type,), node.attrs)


def _paired(graph: Graph, node: Node, x: Value, axis: int) -> Any:
    """Pair a factor's elements along an axis, after padding an odd number of them with a zero."""
    with use(GraphDispatcher(graph, node.location)):
        if x.shape[axis] % 2:
            zeros = (0,) * x.type.rank
            high = tuple(int(i == axis) for i in range(x.type.rank))
            x = pad(x, low=zeros, high=high, interior=zeros, value=0.0)
        return bf16_pairs(x, axis=axis)
