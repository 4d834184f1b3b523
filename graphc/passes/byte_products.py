"""Products of bytes: as f32, as pairs of 16 bits or as bytes, whichever the machine computes fastest."""

from __future__ import annotations

from math import prod

from graphc.base.dtypes import float32, int8, uint8
from graphc.base.records import dataclass
from graphc.base.sizes.size import is_size
from graphc.codegen.machine.costs import DEFAULT, Costs
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.graph.rewrite import Rule, apply_rules
from graphc.ir.op import Trait
from graphc.ops.contraction.byte_product import (
    PAIR,
    byte_conv,
    byte_matmul,
    decompose_byte_conv,
    decompose_byte_matmul,
    decompose_real_byte_conv,
    real_byte_conv,
)
from graphc.ops.contraction.convolution import conv
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.pointwise.elementwise import cast, sub
from graphc.passes.base import PassResult
from graphc.passes.winograd import best_tile, is_allowed, takes_window

_PAIRED = {
    byte_matmul.op: decompose_byte_matmul,
    byte_conv.op: decompose_byte_conv,
    real_byte_conv.op: decompose_real_byte_conv,
}
"""Functions that compute a product from words of some bytes."""


@dataclass(frozen=True)
class ByteProducts:
    """Choose how products of bytes are computed.

    Needs: products of bytes that are not decomposed yet. Does: with costs that ask for it, widens both factors of
    products with several results for each weight to 16 bits, two neighbours along the summed axis in a word; the sums
    are the same. Convolutions with f32 results become those of f32 images where Winograd's method saves more than
    bytes do. Leaves: other products of bytes for ``decompose``, which joins four in a word.

        %y = byte_matmul(%x, %w)    ->    %p = byte_pairs(%x) {axis=1}
                                          %q = byte_pairs(%w) {axis=0}
                                          %t = transpose(%q) {permutation=[1,0]}
                                          %y = pair_matmul(%p, %t)
    """

    name: str = "byte-products"
    costs: Costs = DEFAULT

    def run(self, graph: Graph) -> PassResult:
        """Change the graph in place; count products."""
        reasons: list[str] = []

        def rewrite(graph: Graph, node: Node) -> Value | None:
            gain = self._gain_of_reals(node)
            with use(GraphDispatcher(graph, node.location)):
                if gain > self.costs.rewrites.byte_speed:
                    reasons.append(f"%{node.result.name}: f32 in place of int8, {gain:.2f} times fewer multiplications")
                    return _of_reals(node)
                if not self._takes_pairs(node):
                    return None
                reasons.append(f"%{node.result.name}: int8, widened to pairs of 16 bits")
                return _PAIRED[node.op](*node.operands, **node.attrs, count=PAIR)

        count = apply_rules(graph, [Rule(op.name, rewrite, self.name) for op in _PAIRED])
        return PassResult(graph, count, (*reasons, *_float_products(graph)))

    def _gain_of_reals(self, node: Node) -> float:
        """Return how many times fewer multiplications a convolution of reals takes by Winograd's method; 0 where it is
        not that method's."""
        takes = node.op is real_byte_conv.op and is_allowed(self.costs) and takes_window(node)
        return best_tile(node, self.costs.rewrites)[1] if takes else 0.0

    def _takes_pairs(self, node: Node) -> bool:
        """Check for sums that pairs compute faster: not where each weight is read for few results."""
        result = node.result.shape
        counts = result[:-1] if node.op is byte_matmul.op else (result[0], *result[2:])
        rewrites = self.costs.rewrites
        return rewrites.byte_pairs and not any(map(is_size, counts)) and prod(counts) >= rewrites.paired_results


def _float_products(graph: Graph) -> list[str]:
    """Report products of floats one factor of which bytes become by a conversion, elementwise operations and moves."""
    casts = [n for n in graph.nodes_of(lambda op: op is cast.op) if n.operands[0].dtype in (int8, uint8)]
    stack, products = list(casts), dict[Node, None]()
    visited = set(casts)
    while stack:
        for node, _ in graph.uses(stack.pop().result):
            if node.op.has(Trait.CONTRACTION):
                products[node] = None
            elif node.op.has_any(Trait.ELEMENTWISE | Trait.VIEW) and node not in visited:
                visited.add(node)
                stack.append(node)
    floats = [node for node in products if node.result.dtype.kind == "f"]
    return [f"%{node.result.name}: {node.op.name} in {node.result.dtype.name}, a factor is int8" for node in floats]


def _of_reals(node: Node) -> Value:
    """Return the convolution of codes as f32, the image without its zero point."""
    x, weight = (cast(value, dtype=float32) for value in node.operands)
    zero = node.attrs["zero"]
    attrs = {"padding": ((0, 0), (0, 0)), "groups": 1, **{n: node.attrs[n] for n in ("stride", "dilation")}}
    return conv(sub(x, zero) if zero else x, weight, **attrs)
