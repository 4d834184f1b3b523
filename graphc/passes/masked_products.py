"""Products of rows that are 0 where a mask hides something, as attention makes them, need not read what is hidden."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphc.base.sizes.size import is_one
from graphc.ir.graph.graph import CONSTANT, Graph, Value
from graphc.ops import elementwise as e
from graphc.ops import math, shape
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.masked_product import masked_matmul
from graphc.ops.matrix_product import matmul
from graphc.passes.base import PassResult

LONGEST_SEARCH = 16
"""Nodes between a selection by a mask and the product; a softmax and its views are fewer."""
_VIEWS = (shape.reshape.op, shape.transpose.op, shape.broadcast_to.op)


@dataclass(frozen=True)
class MaskedProducts:
    """Says of which products a mask hides some terms.

    Needs: a graph that is not differentiated any more. Does: a product of single rows that are powers of what is minus
    infinity where a mask hides it becomes one that need not read what only meets zeros; were that infinite or NaN, the
    result would be NaN otherwise. Leaves: products of several rows, which read all of it for some row.

        %s = where(%mask, %q, -inf) : f32[1,8]              %s = where(%mask, %q, -inf) : f32[1,8]
        %p = exp(%s) : f32[1,8]                             %p = exp(%s) : f32[1,8]
        %y = matmul(%p, %v) : f32[1,4]               ->     %y = masked_matmul(%p, %v) : f32[1,4]
    """

    name: str = "masked-products"

    def run(self, graph: Graph) -> PassResult:
        """Counts products."""
        found = [n for n in graph.nodes() if n.op is matmul.op and not any(n.attrs.values())]
        found = [n for n in found if is_one(n.operands[0].shape[-2]) and n.operands[0].dtype.kind == "f"]
        found = [n for n in found if _is_zero_where_masked(n.operands[0])]
        for node in found:
            with use(GraphDispatcher(graph, node.location)):
                graph.replace_uses(node.results[0], masked_matmul(*node.operands))
            graph.erase(node)
        return PassResult(graph, len(found))


def _is_zero_where_masked(value: Value, left: int = LONGEST_SEARCH) -> bool:
    """Whether a value is a power of what is masked, or that times or over something."""
    node = value.node
    if left == 0 or not node.operands:
        return False
    if node.op is math.exp.op:
        return _is_masked(node.operands[0], left - 1)
    if node.op is e.mul.op:
        return any(_is_zero_where_masked(x, left // 2) for x in node.operands)
    return node.op in (e.div.op, *_VIEWS) and _is_zero_where_masked(node.operands[0], left - 1)


def _is_masked(value: Value, left: int) -> bool:
    """Whether a value is minus infinity wherever a mask says so, but for a number less."""
    node = value.node
    if left == 0 or not node.operands:
        return False
    if node.op is e.where.op:
        return any(_is_minus_infinity(x) for x in node.operands[1:])
    return node.op in (e.sub.op, *_VIEWS) and _is_masked(node.operands[0], left - 1)


def _is_minus_infinity(value: Value) -> bool:
    node = value.node.operands[0].node if value.node.op is shape.broadcast_to.op else value.node
    return node.op is CONSTANT and bool(np.isneginf(node.attrs["value"]).all())
