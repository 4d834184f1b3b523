"""Concatenations that Python functions read: operands are computed directly into their slices of the result."""

from __future__ import annotations

from graphc.base.sizes.size import is_size
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.op import Trait
from graphc.ir.types import row_major_strides


def laid_out(graph: Graph) -> set[Node]:
    """Return the concatenation-like views that only Python functions read and whose operands are each a contiguous
    segment of the result. Such a function needs the view in memory, so no reader could compute its operands itself."""
    if not graph.having(Trait.HOST):
        return set()
    outputs = {value.node for value in graph.outputs}
    return {n for n in graph.nodes() if n.op.parts is not None and n not in outputs and _is_laid_out(graph, n)}


def _is_laid_out(graph: Graph, node: Node) -> bool:
    uses = graph.uses(node.result)
    if not uses or not all(user.op.has(Trait.HOST) for user, _ in uses):
        return False
    return all(_is_contiguous(v, node.result) for v in node.operands)


def _is_contiguous(operand: Value, view: Value) -> bool:
    """Check whether an operand's elements, in row-major order, are one contiguous segment of the view."""
    if any(map(is_size, (*operand.shape, *view.shape))):
        return False
    shorter = [i for i, (a, b) in enumerate(zip(operand.shape, view.shape, strict=True)) if a != b]
    return all(extent == 1 for extent in operand.shape[: shorter[-1]]) if shorter else True


def starts(node: Node) -> list[int]:
    """Return, for each operand of a concatenation-like view, the row-major offset in the result at which it begins."""
    assert node.op.parts is not None
    strides = row_major_strides(node.result.shape)
    firsts = node.op.parts(tuple(v.type for v in node.operands), node.attrs)
    return [sum(i * stride for i, stride in zip(first, strides, strict=True)) for first in firsts]
