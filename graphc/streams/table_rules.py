"""Rules for the first rows of a table, one for each sample: a stream reads row by row until the table ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.sizes.named_dims import dimensions, size_of
from graphc.base.sizes.size import Dimension, at, is_size
from graphc.base.sizes.size_limits import limits
from graphc.ir.graph.graph import Graph, Node
from graphc.ir.graph.interpret import assumed, bind
from graphc.ops.movement import shape
from graphc.streams.plan import LONG, Plan, apply, constant
from graphc.streams.signal import Signal, resized


def within_tables(graph: Graph, dimension: Dimension) -> tuple[Graph, Dimension]:
    """Return a graph for lengths at which no table has ended, and its dimension of time: sizes such as ``min(time,
    512)`` are simplified there. Without tables, these are the graph and dimension themselves."""
    size: Any = limits(graph.assumptions, graph.dims).get(dimension.name)
    (found,) = dimensions([size]).values() or (dimension,)
    if found.high == dimension.high or size != size_of(found):
        return graph, dimension
    with assumed(graph, {dimension.name: size}):
        bounded = bind(graph, {dimension.name: size})
    bounded.assumptions, bounded.bound = graph.assumptions, graph.bound
    return (bounded, found) if any(_ends(node, found) for node in bounded.nodes()) else (graph, dimension)


def longest(plan: Plan) -> int | None:
    """Return the largest size of the dimension of time at which no table has ended; None without tables."""
    return min((end for node in plan.live for end in _ends(node, plan.dimension)), default=None)


def _ends(node: Node, dimension: Dimension) -> list[int]:
    """Return the largest size of the dimension of time for each table that a node slices."""
    if node.op is not shape.slice.op:
        return []
    found = []
    for stop, size in zip(node.attrs["stops"], node.operands[0].shape, strict=True):
        if is_size(stop) and not is_size(size) and at(stop, {dimension: LONG}) > size:
            low, high = 0, LONG
            while low + 1 < high:
                middle = (low + high) // 2
                low, high = (middle, high) if at(stop, {dimension: middle}) <= size else (low, middle)
            found.append(low)
    return found


def rows(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for slices of a table up to the length of the sequence. A tick stops with IndexRangeError at its end."""
    (table,), value, attrs = signals, node.results[0], plan.attrs(node)
    axes, sizes = plan.axes(value), tuple(plan.size(n) for n in value.shape)
    columns = axes[1] if len(axes) > 1 else None
    if any(plan.depends(node.attrs["starts"][a]) or attrs["steps"][a] != 1 for a in axes):
        raise plan.unsupported(node, "it takes rows from a table at positions that depend on the length")
    axis = axes[0]
    block = plan.block_of(value.shape[axis])
    signal = Signal(value, -1, resized(sizes, axis, block), axis, block, columns=columns, positional=True)
    numbers, size = np.arange(block, dtype=np.int64) + attrs["starts"][axis], table.shape[axis]
    limits = {"low": 0, "high": size - 1, "what": f"{plan.where(node)}: position"}
    others = {**attrs, "starts": resized(attrs["starts"], axis, 0), "stops": resized(attrs["stops"], axis, size)}

    def run(array: Any, first: Any) -> Sequence[Any]:
        positions = apply("add", (constant(numbers), first), {})
        check = apply("check_index", (positions,), limits)
        if columns is not None:
            return check, check
        return apply("gather", (apply("slice", (array,), others), positions), {"axis": axis}), check

    slot, _ = plan.add(run, (table.slot, plan.start(signal)), count=2, always=True)
    if columns is not None:
        slot = plan.refuse(plan.unsupported(node, "values of pairs of samples from a table, outside of a mask"))
    return [Signal(value, slot, signal.shape, axis, block, columns=columns, positional=True)]
