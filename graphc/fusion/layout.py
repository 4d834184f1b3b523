"""Layouts: the order of the dimensions of images in memory between the kernels of a graph."""

from __future__ import annotations

from graphc.base.sizes.size import hint
from graphc.codegen.machine.costs import DEFAULT, FusionCosts
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.op import Dims
from graphc.ir.types import row_major_strides

LAYOUTS = ("channels_first", "channels_last", "batch_last")
"""Memory layouts of temporaries that hold images: N C H W as users see them, N H W C, or C H W N."""


def image_values(graph: Graph) -> set[Value]:
    """Return the image values: operands and results of convolutions and pools, and elementwise functions of them."""
    images: set[Value] = set()
    stack: list[Value] = []
    for node in graph.nodes():
        rule = node.op.image
        if rule is not None:
            stack += [v for v, dims in zip(node.operands, rule.operands, strict=True) if dims is Dims.IMAGE]
            stack += node.results if rule.result is Dims.IMAGE else ()
    while stack:
        value = stack.pop()
        if value in images or len(value.shape) <= 2:
            continue
        images.add(value)
        neighbours = [value.node, *(user for user, _ in graph.uses(value))]
        for node in neighbours:
            rule = node.op.image_rule(len(node.operands))
            same = [v for v, d in zip(node.operands, rule.operands, strict=True) if d is Dims.SAME]
            same += node.results if rule.result is Dims.SAME else ()
            if value in same:
                stack += [v for v in same if len(v.shape) == len(value.shape)]
    return images


def possible_layouts(graph: Graph, costs: FusionCosts = DEFAULT.fusion) -> tuple[str, ...]:
    """Return the layouts worth comparing for a graph: one when it has no images."""
    images = image_values(graph)
    if not images:
        return LAYOUTS[:1]
    batch = max(hint(v.shape[0]) for v in images)
    return LAYOUTS if batch >= costs.batch_last else LAYOUTS[:2]


def strides_of(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """Return the strides, in elements, of a dense array of ``shape`` in the given layout."""
    order = dimension_order(len(shape), layout)
    sorted_strides = row_major_strides(tuple(shape[i] for i in order))
    by_dimension = dict(zip(order, sorted_strides, strict=True))
    return tuple(by_dimension[i] for i in range(len(shape)))


def turned_strides(graph: Graph, value: Value) -> tuple[int, ...] | None:
    """Return strides that make the transposes of a value row-major reads, if one and the same transpose is its only
    use.

    Returns None where the value has other uses, or where its rows would no longer be contiguous. An example is the
    concatenated heads of attention.
    """
    users = [node for node, _ in graph.uses(value)]
    if value in graph.outputs or not users or value.type.rank == 0:
        return None
    turn = _permutation(users[0])
    if turn is None or turn[-1] != len(turn) - 1 or any(_permutation(node) != turn for node in users):
        return None
    by_dimension = dict(zip(turn, row_major_strides(users[0].result.shape), strict=True))
    return tuple(by_dimension[i] for i in range(len(turn)))


def _permutation(node: Node) -> tuple[int, ...] | None:
    return None if node.op.permutes is None else node.op.permutes(node.attrs)


def dimension_order(rank: int, layout: str) -> tuple[int, ...]:
    """Return the dimensions from the outermost to the innermost in memory."""
    if layout == "channels_last":
        return (0, *range(2, rank), 1)
    if layout == "batch_last":
        return (*range(1, rank), 0)
    return tuple(range(rank))
