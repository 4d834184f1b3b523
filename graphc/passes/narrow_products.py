"""Products with bf16 factors: what large products of f32 multiply is rounded to bf16 and paired, sums stay f32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphc.base.dtypes import float32
from graphc.base.sizes.size import is_size
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.graph.rewrite import Rule, apply_rules
from graphc.ir.op import Trait
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.matrix_product import bf16_pairs
from graphc.ops.shape import pad
from graphc.passes.base import PassResult

SMALLEST = 1 << 16
"""Multiply-adds of a product that is worth it."""


@dataclass(frozen=True)
class NarrowProducts:
    """Rounds the factors of matrix products and convolutions to bf16, two neighbours along what is summed in a word.

    Needs: a graph that is not differentiated any more, with gradients of convolutions decomposed. Does: products of f32
    with at least SMALLEST multiply-adds take pairs; an odd number of elements gets a zero behind it. Leaves: f32 sums
    and results; as they are products of which sizes are known at run time only, and convolutions in groups of an odd
    number of channels.

        %y = matmul(%x, %w) {transpose_b=true}    ->    %p = bf16_pairs(%x) {axis=1}
                                                        %q = bf16_pairs(%w) {axis=1}
                                                        %y = matmul(%p, %q) {transpose_b=true}
    """

    name: str = "narrow-products"

    def run(self, graph: Graph) -> PassResult:
        """Changes the graph in place; counts products."""
        reasons: list[str] = []

        def rewrite(graph: Graph, node: Node) -> Value | None:
            axes = _axes(node)
            if axes is None:
                return None
            pairs = [_paired(graph, node, *found) for found in zip(node.operands, axes, strict=True)]
            (product,) = emit(graph, node.op, pairs, node.attrs, node.location)
            reasons.append(f"{node.results[0].name}: {node.op.name} of pairs of bf16, sums of f32")
            return product

        return PassResult(graph, apply_rules(graph, [Rule(Trait.CONTRACTION, rewrite, self.name)]), tuple(reasons))


def _axes(node: Node) -> tuple[int, int] | None:
    """Along which axes of the operands neighbours become pairs; None for a product that stays as it is."""
    types = tuple(x.type for x in (*node.operands, *node.results))
    if node.op.pairs is None or types[0].dtype is not float32 or any(is_size(n) for t in types for n in t.shape):
        return None
    return node.op.pairs(types[:2], node.attrs) if _multiply_adds(node) >= SMALLEST else None


def _multiply_adds(node: Node) -> int:
    assert node.op.multiply_adds is not None
    return node.op.multiply_adds(tuple(x.type for x in node.operands), (node.results[0].type,), node.attrs)


def _paired(graph: Graph, node: Node, x: Value, axis: int) -> Any:
    """Pairs along an axis of a factor, whose last one has a zero where their number is odd."""
    with use(GraphDispatcher(graph, node.location)):
        if x.shape[axis] % 2:
            none = (0,) * x.type.rank
            behind = tuple(int(i == axis) for i in range(x.type.rank))
            x = pad(x, low=none, high=behind, interior=none, value=0.0)
        return bf16_pairs(x, axis=axis)
