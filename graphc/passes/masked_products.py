"""Masked products: rows with zeros where a mask hides elements, as in attention, skip the hidden elements."""

from __future__ import annotations

import numpy as np

from graphc.base.records import dataclass
from graphc.base.sizes.size import is_one
from graphc.ir.graph.graph import CONSTANT, Graph, Value
from graphc.ops.contraction.masked_product import masked_matmul
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as e
from graphc.ops.pointwise import math
from graphc.passes.base import PassResult

LONGEST_SEARCH = 16
"""Nodes between a selection by a mask and the product; a softmax and its views need fewer."""
_VIEWS = (shape.reshape.op, shape.transpose.op, shape.broadcast_to.op)


@dataclass(frozen=True)
class MaskedProducts:
    """Mark products whose terms a mask sets to zero.

    Needs: a graph that is not differentiated any more. Does: replaces matmul by masked_matmul where the left operand is
    a single row of powers, with zeros where a mask made their exponents minus infinity. Rows of the other operand that
    meet only zeros need not be read; where they are infinite or NaN, matmul would give NaN. Leaves: products of several
    rows, since some row needs every element.

        %s = where(%mask, %q, -inf) : f32[1,8]              %s = where(%mask, %q, -inf) : f32[1,8]
        %p = exp(%s) : f32[1,8]                             %p = exp(%s) : f32[1,8]
        %y = matmul(%p, %v) : f32[1,4]               ->     %y = masked_matmul(%p, %v) : f32[1,4]
    """

    name: str = "masked-products"

    def run(self, graph: Graph) -> PassResult:
        """Count products."""
        products = [n for n in graph.nodes() if n.op is matmul.op and not any(n.attrs.values())]
        products = [n for n in products if is_one(n.operands[0].shape[-2]) and n.operands[0].dtype.kind == "f"]
        products = [n for n in products if _is_zero_where_masked(n.operands[0])]
        for node in products:
            with use(GraphDispatcher(graph, node.location)):
                graph.replace_uses(node.results[0], masked_matmul(*node.operands))
            graph.erase(node)
        return PassResult(graph, len(products))


def _is_zero_where_masked(value: Value, budget: int = LONGEST_SEARCH) -> bool:
    """Check whether a value is a power of a masked value, or such a power multiplied or divided by something."""
    node = value.node
    if budget == 0 or not node.operands:
        return False
    if node.op is math.exp.op:
        return _is_masked(node.operands[0], budget - 1)
    if node.op is e.mul.op:
        return any(_is_zero_where_masked(x, budget // 2) for x in node.operands)
    return node.op in (e.div.op, *_VIEWS) and _is_zero_where_masked(node.operands[0], budget - 1)


def _is_masked(value: Value, budget: int) -> bool:
    """Check whether a value is minus infinity wherever a mask says so; a subtrahend does not change that."""
    node = value.node
    if budget == 0 or not node.operands:
        return False
    if node.op is e.where.op:
        return any(_is_minus_infinity(x) for x in node.operands[1:])
    return node.op in (e.sub.op, *_VIEWS) and _is_masked(node.operands[0], budget - 1)


def _is_minus_infinity(value: Value) -> bool:
    node = value.node.operands[0].node if value.node.op is shape.broadcast_to.op else value.node
    return node.op is CONSTANT and bool(np.isneginf(node.attrs["value"]).all())
