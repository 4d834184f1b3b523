"""Rules for ops that treat each sample by itself: elementwise ops, products, reductions of other dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.ir.graph.graph import Node
from graphc.ops import dispatch
from graphc.ops.effects.check import limits_of
from graphc.streams.plan import Plan
from graphc.streams.signal import Signal, of_axis, resized

Rule = Callable[[Plan, Node, Sequence[Signal]], list[Signal]]


def still(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for ops whose operands are the same in all ticks."""
    attrs = plan.attrs(node)
    slots = run_op(plan, node, signals, attrs)
    arrays = [s.constant for s in signals if s.constant is not None]
    found: Sequence[Any] = [None] * len(node.results)
    if len(arrays) == len(signals):
        found = node.op.evaluate(arrays, attrs)
    shapes = [tuple(plan.size(n) for n in v.shape) for v in node.results]
    return [plan.result(node, slot, i, shape=shapes[i], constant=found[i]) for i, slot in enumerate(slots)]


def run_op(plan: Plan, node: Node, signals: Sequence[Signal], attrs: Any) -> list[int]:
    """Add a step that applies a node's op to blocks, and return the slots of its results."""

    def run(*operands: Any) -> Sequence[Any]:
        results = dispatch.apply(node.op, operands, attrs)
        return results if isinstance(results, tuple) else (results,)

    return plan.add(run, [s.slot for s in signals], count=len(node.results))


def prefix_of(plan: Plan, node: Node, signals: Sequence[Signal], attrs: Any, delay: int) -> list[Any]:
    """Return the known samples of each result of an op that treats each sample by itself."""
    if delay >= 0:
        return [None] * len(node.results)
    arrays = [known_samples(plan, node, s, -delay) for s in signals]
    return [*node.op.evaluate(arrays, attrs)]


def known_samples(plan: Plan, node: Node, signal: Signal, count: int) -> np.ndarray:
    """Return the first samples of a signal, or the elements of a value without time."""
    if signal.axis is None:
        if signal.constant is None:
            raise plan.unsupported(node, "samples before the first input would depend on an argument")
        return signal.constant
    assert signal.prefix is not None
    return signal.prefix[of_axis(signal.axis, signal.rank, slice(0, count))]


def each_sample(
    plan: Plan, node: Node, signals: Sequence[Signal], axis: int, attrs: Any, known: Any = None, **facts: Any
) -> list[Signal]:
    """Apply an op to blocks with one delay. ``axis`` is the dimension of time of its results, ``known`` the attributes
    for the samples known before the first tick (default: ``attrs``)."""
    signals = plan.aligned(node, signals)
    moving = next(s for s in signals if s.axis is not None)
    least = max(s.least for s in signals if s.axis is not None)
    slots = run_op(plan, node, signals, attrs)
    shapes = [resized([plan.size(n) for n in v.shape], axis, moving.block * moving.rows) for v in node.results]
    if plan.runs(signals):
        prefixes = prefix_of(plan, node, signals, attrs if known is None else known(-moving.delay), moving.delay)
    else:
        prefixes = [np.zeros(resized(s, axis, moving.known)) if moving.known else None for s in shapes]
    found = []
    for index, slot in enumerate(slots):
        common = {"axis": axis, "block": moving.block, "delay": moving.delay, "prefix": prefixes[index], "least": least}
        common["rows"] = moving.rows
        found.append(plan.result(node, slot, index, shape=shapes[index], **common, **facts))
    return found


def elementwise(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for elementwise ops with broadcasting."""
    rank = max(s.rank for s in signals)
    axes = {s.axis - s.rank for s in signals if s.axis is not None}
    if not axes:
        return latest(plan, node, signals)
    if len(axes) > 1 or any(s.latest for s in signals):
        latest_too = any(s.latest for s in signals)
        different = (
            "the last sample together with all samples" if latest_too else "operands with different dimensions of time"
        )
        raise plan.unsupported(node, different)
    positional = all(s.positional or s.axis is None for s in signals)
    if any(s.columns is not None for s in signals):
        raise AssertionError("the rule of attentions has these")
    return each_sample(plan, node, signals, axes.pop() + rank, plan.attrs(node), positional=positional)


def latest(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for ops on values of the last sample, which have no dimension of time."""
    slots = run_op(plan, node, signals, plan.attrs(node))
    shapes = [tuple(plan.size(n) for n in v.shape) for v in node.results]
    return [plan.result(node, slot, i, shape=shapes[i], latest=True) for i, slot in enumerate(slots)]


def reduction(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for reductions along ``axes`` or one ``axis``."""
    (signal,), attrs = signals, plan.attrs(node)
    axes = attrs["axes"] if "axes" in attrs else (attrs["axis"],)
    assert signal.axis is not None
    if signal.axis in axes:
        raise plan.whole(node, f"it is a {node.op.name} over all samples")
    kept = attrs.get("keepdims", False)
    axis = signal.axis if kept else signal.axis - sum(a < signal.axis for a in axes)
    return each_sample(plan, node, signals, axis, attrs)


def along_axis(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for ops that work along one ``axis``, or several ``axes``, and keep the other dimensions."""
    attrs, axis = plan.attrs(node), signals[0].axis
    assert axis is not None
    axes = attrs["axes"] if "axes" in attrs else (attrs["axis"],)
    if axis in [a % signals[0].rank for a in axes]:
        raise plan.whole(node, f"{node.op.name} goes over all samples")
    return each_sample(plan, node, signals, axis, attrs)


def matmul(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for matrix products, of rows in time or of batches in time."""
    a, b = signals
    attrs = plan.attrs(node)
    rank, places = len(node.results[0].shape), set()
    for signal, turned, other in ((a, attrs["transpose_a"], False), (b, attrs["transpose_b"], True)):
        if signal.axis is None:
            continue
        place = signal.axis - signal.rank
        if place < -2:
            places.add(place)
            continue
        place = -3 - place if turned else place
        if place == (-2 if other else -1):
            raise plan.whole(node, "it adds products of all samples")
        places.add(place)
    if len(places) > 1:
        raise plan.unsupported(node, "a product of all pairs of samples")
    if not places:
        return latest(plan, node, signals)
    return each_sample(plan, node, signals, places.pop() + rank, attrs)


def check(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for checks of elements, which every tick makes. Samples before the start of the sequence pass.

    Limits that depend on the length are those of positions, whose pattern of reads shows that they are valid.
    """
    (signal,) = signals
    low, high, _ = limits_of(node.attrs)
    slot = signal.slot
    if plan.runs(signals) and not (plan.depends(low) or plan.depends(high)):
        if signal.columns is not None:
            raise plan.unsupported(node, "a check of pairs of samples")
        attrs = plan.attrs(node)
        prefix_of(plan, node, signals, attrs, signal.delay)
        passes = sorted((low, 0, high))[1]
        reads = [plan.cleared(node, plan.taken_apart(signal), passes).slot]
        slot = plan.add(lambda x: (dispatch.apply(node.op, (x,), attrs),), reads, always=True)[0]
    return [plan.result(node, slot, shape=())]


def rows(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for transforms of the last dimensions, where time is one of those before them."""
    signal = signals[0]
    assert signal.axis is not None
    return each_sample(plan, node, signals, signal.axis, plan.attrs(node))
