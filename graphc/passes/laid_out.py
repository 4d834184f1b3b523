"""Concatenations that Python functions are given: their parts are computed where they lie in them."""

from __future__ import annotations

from graphc.base.sizes.size import is_size
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.op import Trait
from graphc.ir.types import row_major_strides


def laid_out(graph: Graph) -> set[Node]:
    """Views of several operands, each of which is a stretch of the result, that nothing but Python functions reads:
    these need them in memory, so that no reader computes parts of its own."""
    if not any(node.op.has(Trait.HOST) for node in graph.nodes()):
        return set()
    outputs = {value.node for value in graph.outputs}
    return {n for n in graph.nodes() if n.op.parts is not None and n not in outputs and _is_laid_out(graph, n)}


def _is_laid_out(graph: Graph, node: Node) -> bool:
    uses = graph.uses(node.result)
    if not uses or not all(user.op.has(Trait.HOST) for user, _ in uses):
        return False
    return all(_is_stretch(v, node.result) for v in node.operands)


def _is_stretch(part: Value, whole: Value) -> bool:
    """Whether a part with the row-major order of its elements lies in one piece in the whole."""
    if any(map(is_size, (*part.shape, *whole.shape))):
        return False
    shorter = [i for i, (a, b) in enumerate(zip(part.shape, whole.shape, strict=True)) if a != b]
    return all(extent == 1 for extent in part.shape[: shorter[-1]]) if shorter else True


def starts(node: Node) -> list[int]:
    """For each operand of a view of several ones the element of the result, in row-major order, at which it begins."""
    assert node.op.parts is not None
    strides = row_major_strides(node.result.shape)
    firsts = node.op.parts(tuple(v.type for v in node.operands), node.attrs)
    return [sum(i * stride for i, stride in zip(first, strides, strict=True)) for first in firsts]
