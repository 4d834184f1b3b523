"""Pairs of widened bytes: products of bytes on machines without an instruction that multiplies four of them."""

from __future__ import annotations

from math import prod

from graphc.base.records import dataclass
from graphc.base.sizes.size import is_size
from graphc.codegen.machine.costs import DEFAULT, Costs
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.graph.rewrite import Rule, apply_rules
from graphc.ops.contraction.byte_product import (
    PAIR,
    byte_conv,
    byte_matmul,
    decompose_byte_conv,
    decompose_byte_matmul,
)
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.passes.base import PassResult


@dataclass(frozen=True)
class BytePairs:
    """Widen the bytes of products to 16 bits, two neighbours along the summed axis in a word.

    Needs: products of bytes that are not decomposed yet. Does: with costs that ask for it, widens both factors of
    products with several results for each weight. Leaves: other products of bytes for ``decompose``, which joins four
    in a word. The sums are the same.

        %y = byte_matmul(%x, %w)    ->    %p = byte_pairs(%x) {axis=1}
                                          %q = byte_pairs(%w) {axis=0}
                                          %t = transpose(%q) {permutation=[1,0]}
                                          %y = pair_matmul(%p, %t)
    """

    name: str = "byte-pairs"
    costs: Costs = DEFAULT

    def run(self, graph: Graph) -> PassResult:
        """Change the graph in place; count products."""
        if not self.costs.rewrites.byte_pairs:
            return PassResult(graph, 0)
        rules = [Rule(op.name, self._rewrite, self.name) for op in (byte_matmul.op, byte_conv.op)]
        return PassResult(graph, apply_rules(graph, rules))

    def _rewrite(self, graph: Graph, node: Node) -> Value | None:
        result = node.results[0].shape
        counts = result[:-1] if node.op is byte_matmul.op else (result[0], *result[2:])
        if any(map(is_size, counts)) or prod(counts) < self.costs.rewrites.paired_results:
            return None
        decompose = decompose_byte_matmul if node.op is byte_matmul.op else decompose_byte_conv
        with use(GraphDispatcher(graph, node.location)):
            return decompose(*node.operands, **node.attrs, count=PAIR)
