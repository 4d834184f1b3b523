"""Layouts: in which order the dimensions of images lie in memory between the kernels of a graph."""

from __future__ import annotations

from graphc.base.sizes.size import hint
from graphc.codegen.machine.costs import DEFAULT, FusionCosts
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.op import Dims
from graphc.ir.types import row_major_strides

LAYOUTS = ("channels_first", "channels_last", "batch_last")
"""What temporaries that hold images may look like: N C H W as users see them, N H W C, or C H W N."""


def image_values(graph: Graph) -> set[Value]:
    """Values that are images: what convolutions and pools read and give, and what is made of it element by element."""
    found: set[Value] = set()
    stack: list[Value] = []
    for node in graph.nodes():
        rule = node.op.image
        if rule is not None:
            stack += [v for v, dims in zip(node.operands, rule.operands, strict=True) if dims is Dims.IMAGE]
            stack += node.results if rule.result is Dims.IMAGE else ()
    while stack:
        value = stack.pop()
        if value in found or len(value.shape) <= 2:
            continue
        found.add(value)
        neighbours = [value.node, *(user for user, _ in graph.uses(value))]
        for node in neighbours:
            rule = node.op.image_rule(len(node.operands))
            same = [v for v, d in zip(node.operands, rule.operands, strict=True) if d is Dims.SAME]
            same += node.results if rule.result is Dims.SAME else ()
            if value in same:
                stack += [v for v in same if len(v.shape) == len(value.shape)]
    return found


def possible_layouts(graph: Graph, costs: FusionCosts = DEFAULT.fusion) -> tuple[str, ...]:
    """The layouts worth comparing for a graph: one when it has no images."""
    images = image_values(graph)
    if not images:
        return LAYOUTS[:1]
    batch = max(hint(v.shape[0]) for v in images)
    return LAYOUTS if batch >= costs.batch_last else LAYOUTS[:2]


def strides_of(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """Strides in elements of a dense array of ``shape`` in the given layout."""
    order = dimension_order(len(shape), layout)
    sorted_strides = row_major_strides(tuple(shape[i] for i in order))
    by_dimension = dict(zip(order, sorted_strides, strict=True))
    return tuple(by_dimension[i] for i in range(len(shape)))


def turned_strides(graph: Graph, value: Value) -> tuple[int, ...] | None:
    """Strides under which the only reads of a value, transposes that are all alike, are in order; None where it has
    other reads, or rows would no longer be in one piece. Heads of attention, put side by side, are such a value."""
    users = [node for node, _ in graph.uses(value)]
    if value in graph.outputs or not users or value.type.rank == 0:
        return None
    order = _permutation(users[0])
    if order is None or order[-1] != len(order) - 1 or any(_permutation(node) != order for node in users):
        return None
    by_dimension = dict(zip(order, row_major_strides(users[0].result.shape), strict=True))
    return tuple(by_dimension[i] for i in range(len(order)))


def _permutation(node: Node) -> tuple[int, ...] | None:
    return None if node.op.permutes is None else node.op.permutes(node.attrs)


def dimension_order(rank: int, layout: str) -> tuple[int, ...]:
    """Dimensions from the outermost to the innermost in memory."""
    if layout == "channels_last":
        return (0, *range(2, rank), 1)
    if layout == "batch_last":
        return (*range(1, rank), 0)
    return tuple(range(rank))
