"""Rules for ops that move elements: reshape, transpose, slice, pad, concat, broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from graphc.ir.graph.graph import Node
from graphc.streams.basic_rules import each_sample, known_samples
from graphc.streams.plan import Indivisible, Plan, apply, cut
from graphc.streams.signal import Signal, ceil_to, of_axis, resized


def transpose(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    attrs = plan.attrs(node)
    axis = attrs["permutation"].index(signals[0].axis)
    return each_sample(plan, node, signals, axis, attrs)


def flip(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    attrs, axis = plan.attrs(node), signals[0].axis
    if axis in attrs["axes"]:
        raise plan.whole(node, "it reads the samples from the last one to the first")
    assert axis is not None
    return each_sample(plan, node, signals, axis, attrs)


def broadcast_to(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    (signal,) = signals
    rank = len(node.results[0].shape)
    shape = tuple(plan.size(n) for n in node.results[0].shape)
    if signal.axis is None:
        raise plan.unsupported(node, "a value of the last sample, repeated for all samples")
    axis = signal.axis - signal.rank + rank

    def known(count: int) -> dict[str, Any]:
        return {"shape": resized(shape, axis, count)}

    return each_sample(plan, node, signals, axis, known(signal.block * signal.rows), known)


def reshape(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Keep, merge or split the dimension of time: with dimensions of size 1 before it, or later ones."""
    (signal,) = signals
    axis, result = signal.axis, node.results[0]
    assert axis is not None
    old = [plan.size(n) for n in signal.value.shape]
    new = [plan.size(n) for n in result.shape]
    before, length = prod(old[:axis]), old[axis]
    candidates = plan.axes(result)
    found = next((a for a in candidates if prod(new[:a]) == before), None)
    if found is None:
        return [_rows(plan, node, signal, new, candidates)]
    if new[found] == length:
        return each_sample(plan, node, signals, found, *_shapes(new, found, signal.block * signal.rows))
    if signal.rows > 1:
        raise plan.unsupported(node, "a reshape that mixes samples with dimensions before them")
    if new[found] % length == 0:
        return [_scaled(plan, node, signal, found, new, new[found] // length)]
    if length % new[found] == 0:
        factor = length // new[found]
        if prod(new[found + 1 :]) % factor:
            raise plan.unsupported(node, "a reshape that mixes samples with other dimensions")
        return [_split(plan, node, signal, found, new, factor)]
    raise plan.unsupported(node, "a reshape that mixes samples with other dimensions")


def _rows(plan: Plan, node: Node, signal: Signal, new: Sequence[int], candidates: Sequence[int]) -> Signal:
    """Merge dimensions before time into it, or take them apart; samples may be split or joined by the same reshape."""
    axis = signal.axis
    assert axis is not None
    length = plan.size(signal.value.shape[axis]) // signal.rows
    before = prod(signal.shape[:axis]) * signal.rows
    for found in candidates:
        rows, rest = divmod(before, prod(new[:found]))
        up, down = max(1, new[found] // (rows * length or 1)), max(1, rows * length // new[found])
        if rest or new[found] * down != rows * length * up:
            continue
        if signal.block % down:
            raise Indivisible(down, node, signal.block)
        signal = plan.delayed(node, signal, ceil_to(max(0, signal.delay), down))
        block = signal.block * up // down
        shape = resized(new, found, rows * block)
        slot = plan.reshaped(signal.slot, shape)
        facts = {"block": block, "delay": signal.delay * up // down, "least": -(-signal.least * up // down)}
        return replace(_renewed(plan, node, signal, slot, shape, found), rows=rows, **facts)
    raise plan.unsupported(node, "a reshape that mixes samples with dimensions before them")


def _shapes(shape: Sequence[int], axis: int, block: int) -> tuple[dict[str, Any], Any]:
    def known(count: int) -> dict[str, Any]:
        return {"shape": resized(shape, axis, count)}

    return known(block), known


def _scaled(plan: Plan, node: Node, signal: Signal, axis: int, new: Sequence[int], factor: int) -> Signal:
    """Merge dimensions after time into it: ``factor`` samples for each."""
    shape = resized(new, axis, signal.block * factor)
    slot = plan.reshaped(signal.slot, shape)
    prefix = None if signal.prefix is None else signal.prefix.reshape(resized(new, axis, signal.known * factor))
    return replace(
        _renewed(plan, node, signal, slot, shape, axis),
        block=signal.block * factor,
        delay=signal.delay * factor,
        prefix=prefix,
        least=signal.least * factor,
    )


def _split(plan: Plan, node: Node, signal: Signal, axis: int, new: Sequence[int], factor: int) -> Signal:
    """Make one sample of ``factor`` neighbours."""
    if signal.block % factor:
        raise Indivisible(factor, node, signal.block)
    signal = plan.delayed(node, signal, -(-signal.delay // factor) * factor)
    shape = resized(new, axis, signal.block // factor)
    slot = plan.reshaped(signal.slot, shape)
    prefix = None if signal.prefix is None else signal.prefix.reshape(resized(new, axis, signal.known // factor))
    return replace(
        _renewed(plan, node, signal, slot, shape, axis),
        block=signal.block // factor,
        delay=signal.delay // factor,
        prefix=prefix,
        least=-(-signal.least // factor),
    )


def _renewed(
    plan: Plan, node: Node, signal: Signal, slot: int, shape: tuple[int, ...], axis: int, index: int = 0
) -> Signal:
    """Return a signal with the same facts as another one, for a result of a node."""
    return replace(signal, value=node.results[index], slot=slot, shape=shape, axis=axis, constant=None)


def slice_rule(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    (signal,), attrs = signals, plan.attrs(node)
    axis = signal.axis
    assert axis is not None
    length = plan.size(signal.value.shape[axis])
    start, stop, step = (attrs[name][axis] for name in ("starts", "stops", "steps"))
    others = {**attrs, "starts": _set(attrs["starts"], axis, 0), "steps": _set(attrs["steps"], axis, 1)}

    def known(count: int) -> dict[str, Any]:
        return {**others, "stops": _set(attrs["stops"], axis, count)}

    if plan.depends(node.attrs["starts"][axis]):
        return [_last(plan, node, signal, attrs, length)]
    if not plan.axes(node.results[0]):
        raise plan.unsupported(node, f"it takes the samples {start} to {stop - 1} alone")
    signal = each_sample(plan, node, signals, axis, known(signal.block * signal.rows), known)[0]
    return [strided(plan, node, dropped(node, signal, start), step)]


def _set(sizes: Sequence[int], axis: int, size: int) -> tuple[int, ...]:
    return tuple(size if i == axis else n for i, n in enumerate(sizes))


def _last(plan: Plan, node: Node, signal: Signal, attrs: Any, length: int) -> Signal:
    """Take the last samples of the sequence, which are those of the present tick."""
    axis = signal.axis
    assert axis is not None
    count = length - attrs["starts"][axis]
    if attrs["stops"][axis] != length or attrs["steps"][axis] != 1 or plan.axes(node.results[0]):
        raise plan.unsupported(node, "it takes samples from the end of the sequence")
    if plan.late(signal) > 0:
        raise plan.whole(node, "it takes the last samples, some of which are computed later")
    signal = plan.delayed(node, signal, signal.delay - plan.late(signal))
    slot, total = signal.slot, signal.block
    if count > total:
        slot, total = plan.history(node, signal, count - total), count
    rank = signal.rank
    starts = _set(attrs["starts"], axis, total - count)
    own = {"starts": starts, "stops": _set(attrs["stops"], axis, total), "steps": attrs["steps"]}
    slot = plan.add(lambda x: (apply("slice", (x,), own),), (slot,))[0]
    shape = tuple(plan.size(n) for n in node.results[0].shape)
    assert len(shape) == rank
    return plan.result(node, slot, shape=shape, latest=True)


def dropped(node: Node, signal: Signal, first: int) -> Signal:
    """Leave out the first samples of a sequence."""
    axis = signal.axis
    assert axis is not None
    delay, prefix = signal.delay + first, None
    if delay < 0 and signal.prefix is not None:
        prefix = signal.prefix[of_axis(axis, signal.rank, slice(first, None))]
    return replace(signal, value=node.results[0], delay=delay, prefix=prefix, least=signal.least + first)


def strided(plan: Plan, node: Node, signal: Signal, step: int) -> Signal:
    """Keep every ``step``-th sample from the first one on."""
    if step == 1:
        return signal
    axis = signal.axis
    assert axis is not None
    if signal.block % step:
        raise Indivisible(step, node, signal.block)
    block, first = signal.block, signal.delay % step
    slot = plan.add(lambda x: (cut(x, axis, first, block, step),), (signal.slot,))[0]
    prefix = None
    if signal.prefix is not None:
        prefix = signal.prefix[of_axis(axis, signal.rank, slice(0, None, step))]
    return replace(
        signal,
        slot=slot,
        shape=resized(signal.shape, axis, block // step),
        block=block // step,
        delay=signal.delay // step,
        prefix=prefix,
        least=signal.least // step,
    )


def pad_rule(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Pad other dimensions in each block, and time by samples known before the first tick."""
    (signal,), attrs = signals, plan.attrs(node)
    axis = signal.axis
    assert axis is not None
    low, interior = attrs["low"][axis], attrs["interior"][axis]
    others = {**attrs, **{name: _set(attrs[name], axis, 0) for name in ("low", "high", "interior")}}
    if any(others["low"]) or any(others["high"]) or any(others["interior"]):
        signal = each_sample(plan, node, signals, axis, others)[0]
    if interior:
        signal = _spread(plan, node, signal, interior, attrs["value"])
    return [padded(plan, node, signal, low, attrs["value"])]


def padded(plan: Plan, node: Node, signal: Signal, low: int, value: float) -> Signal:
    """Put ``low`` samples of one value before a sequence; a negative count leaves samples out. What comes behind a
    sequence changes nothing but its length."""
    if low < 0:
        signal, low = dropped(node, signal, -low), 0
    axis = signal.axis
    assert axis is not None
    if low:
        signal = plan.cleared(node, signal, value)
    delay, prefix = signal.delay - low, None
    if delay < 0:
        known = np.full(resized(signal.shape, axis, -delay), value, signal.value.dtype.numpy)
        if signal.prefix is not None:
            known[of_axis(axis, signal.rank, slice(low, None))] = signal.prefix
        prefix = known
    return replace(signal, value=node.results[0], delay=delay, prefix=prefix, least=signal.least - low)


def _spread(plan: Plan, node: Node, signal: Signal, interior: int, value: float) -> Signal:
    """Put samples of one value behind each sample."""
    axis, rank = signal.axis, signal.rank
    assert axis is not None
    each = interior + 1
    zeros = (0,) * rank
    own = {"low": zeros, "high": _set(zeros, axis, interior), "interior": _set(zeros, axis, interior), "value": value}
    slot = plan.add(lambda x: (apply("pad", (x,), own),), (signal.slot,))[0]
    prefix = None
    if signal.prefix is not None:
        prefix = np.full(resized(signal.shape, axis, signal.known * each), value, signal.prefix.dtype)
        prefix[of_axis(axis, rank, slice(0, None, each))] = signal.prefix
    return replace(
        signal,
        slot=slot,
        shape=resized(signal.shape, axis, signal.block * each),
        block=signal.block * each,
        delay=signal.delay * each,
        prefix=prefix,
        least=signal.least * each,
    )


def concat(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Join other dimensions of samples, or put values without time before or behind a sequence."""
    attrs = plan.attrs(node)
    rank = signals[0].rank
    moving = [s for s in signals if s.axis is not None]
    if any(s.latest for s in signals):
        raise plan.unsupported(node, "values of the last sample")
    axis = moving[0].axis
    if axis is None or any(s.axis != axis for s in moving):
        raise plan.unsupported(node, "operands with different dimensions of time")
    if attrs["axis"] % rank != axis:
        if len(moving) < len(signals):
            raise plan.unsupported(node, "a value without time beside samples")
        return each_sample(plan, node, signals, axis, attrs)
    if len(moving) > 1:
        raise plan.whole(node, "it joins sequences one after the other")
    place = next(i for i, s in enumerate(signals) if s.axis is not None)
    signal = moving[0]
    first = [known_samples(plan, node, s, 0) for s in signals[:place]]
    signal, count = moving[0], sum(a.shape[axis] for a in first)
    if count:
        if signal.delay > 0:
            raise plan.unsupported(node, "samples before a delayed sequence")
        signal = padded(plan, node, signal, count, 0.0)
        assert signal.prefix is not None
        signal.prefix[of_axis(axis, rank, slice(0, count))] = np.concatenate(first, axis)
    return [replace(signal, value=node.results[0])]


def sequence_end(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for a size that depends on the length of the sequence."""
    refusal = plan.whole(node, "it computes with the length of the sequence")
    return [plan.result(node, plan.refuse(refusal), shape=(), positional=True)]


def iota(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Positions along time, from a counter of samples; those along other dimensions are constants."""
    attrs, result = plan.attrs(node), node.results[0]
    axes, shape = plan.axes(result), attrs["shape"]
    if len(axes) != 1:
        refusal = plan.unsupported(node, "positions of pairs of samples outside of a mask")
        return [plan.result(node, plan.refuse(refusal), shape=shape, axis=axes[0], columns=axes[1], positional=True)]
    axis = axes[0]
    block = plan.block_of(node.attrs["shape"][axis])
    own, dtype = {**attrs, "shape": resized(shape, axis, block)}, result.dtype
    signal = Signal(result, -1, own["shape"], axis, block, positional=True)
    if attrs["axis"] != axis:
        slot = plan.add(lambda: (apply("iota", (), own),), ())[0]
        return [replace(signal, slot=slot)]
    start = plan.start(signal)

    def run(first: Any) -> Sequence[Any]:
        return (apply("add", (apply("iota", (), own), apply("cast", (first,), {"dtype": dtype})), {}),)

    return [replace(signal, slot=plan.add(run, (start,))[0])]
