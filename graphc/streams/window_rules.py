"""Rules for ops that look at windows of samples: convolutions, pooling, and reads at computed positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.records import dataclass
from graphc.ir.graph.graph import Node, Value
from graphc.ops import dispatch
from graphc.ops.selection import index
from graphc.streams.basic_rules import each_sample, latest
from graphc.streams.flat_rules import is_own, read
from graphc.streams.plan import Indivisible, Plan, apply, constant, cut
from graphc.streams.positions import Pattern, pattern_of
from graphc.streams.signal import Signal, of_axis, resized
from graphc.streams.view_rules import dropped, padded


@dataclass(frozen=True)
class Window:
    """Window along time of a convolution or a pooling."""

    attrs: dict[str, Any]
    """Attributes of the op, without padding in time."""
    place: int
    """Number of the dimension of the window that is time."""
    kernel: int

    @property
    def stride(self) -> int:
        """Distance of two windows."""
        return self.attrs["stride"][self.place]

    @property
    def dilation(self) -> int:
        """Distance of two samples in a window."""
        return self.attrs["dilation"][self.place] if "dilation" in self.attrs else 1

    @property
    def reach(self) -> int:
        """Number of samples from the first one to the last one."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def apart(self) -> dict[str, Any]:
        """Attributes for windows that lie side by side."""
        changed = {"stride": self.kernel, "dilation": 1}
        return {name: self._with(v, changed[name]) if name in changed else v for name, v in self.attrs.items()}

    def _with(self, sizes: Sequence[int], size: int) -> tuple[int, ...]:
        return tuple(size if i == self.place else n for i, n in enumerate(sizes))


def windowed(plan: Plan, node: Node, signals: Sequence[Signal], window: Window) -> Signal:
    """Apply an op to each window of the first signal that ends in a tick; the others are the same in all ticks."""
    signal, others = signals[0], signals[1:]
    axis, stride, reach = signal.axis, window.stride, window.reach
    assert axis is not None
    if signal.block % stride:
        raise Indivisible(stride, node, signal.block)
    delay = -((-signal.delay - reach) // stride) - 1
    first = signal.delay - stride * delay
    block = signal.block // stride
    starts = first + stride * np.arange(block)
    taps = (starts[:, None] + window.dilation * np.arange(window.kernel)).reshape(-1)
    whole = np.arange(first, int(taps[-1]) + 1)
    # Few samples of a long window are read one by one: then windows lie side by side.
    apart = len(taps) * 3 < len(whole)
    attrs = window.apart if apart else window.attrs
    slot = plan.samples(node, signal, taps if apart else whole)
    slot = plan.add(lambda *operands: (dispatch.apply(node.op, operands, attrs),), [slot, *(s.slot for s in others)])[0]
    result_axis = plan.axes(node.results[0])[0]
    shape = resized([plan.size(n) for n in node.results[0].shape], result_axis, block)
    prefix = None
    if delay < 0:
        assert signal.prefix is not None
        arrays = [s.constant for s in others if s.constant is not None]
        if len(arrays) < len(others):
            raise plan.unsupported(node, "samples before the first input would depend on an argument")
        found = node.op.evaluate([signal.prefix, *arrays], window.attrs)[0]
        prefix = found[of_axis(result_axis, len(shape), slice(0, -delay))]
    least = -((-signal.least - reach) // stride) - 1
    return Signal(node.results[0], slot, shape, result_axis, block, delay, prefix, least)


def _time_in_window(plan: Plan, node: Node, signal: Signal) -> int:
    """Return the number of the dimension of a window that is time; -1 if it is the batch."""
    attrs = plan.attrs(node)
    rank = len(attrs["stride"])
    place = signal.axis - (signal.rank - rank) if signal.axis is not None else -1
    if place < 0 and signal.axis != 0:
        raise plan.whole(node, "time is its channels")
    return place


def _opened(attrs: dict[str, Any], place: int) -> tuple[dict[str, Any], int]:
    """Return attributes without padding along one dimension of the window, and the padding before it."""
    padding = list(attrs["padding"])
    (low, _), padding[place] = padding[place], (0, 0)
    return {**attrs, "padding": tuple(padding)}, low


def conv(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for convolutions: the history of a stream is the reach of the kernel."""
    if any(s.axis is not None for s in signals[1:]):
        raise plan.unsupported(node, "weights that depend on time")
    return _sliding(plan, node, signals, 0.0)


def max_pool(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for the largest samples of windows."""
    return _sliding(plan, node, signals, _lowest(signals[0]))


def avg_pool(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for means of windows."""
    place, attrs = _time_in_window(plan, node, signals[0]), plan.attrs(node)
    if place >= 0 and any(attrs["padding"][place]) and not attrs["count_include_pad"]:
        raise plan.unsupported(node, "means of windows that are cut at the start of a sequence")
    return _sliding(plan, node, signals, 0.0)


def _sliding(plan: Plan, node: Node, signals: Sequence[Signal], filler: float) -> list[Signal]:
    """Apply an op of windows; ``filler`` is what its padding means."""
    signal, attrs = signals[0], plan.attrs(node)
    place = _time_in_window(plan, node, signal)
    if place < 0:
        return each_sample(plan, node, signals, 0, attrs)
    kernel = attrs["kernel"][place] if "kernel" in attrs else signals[1].shape[2 + place]
    own, low = _opened(attrs, place)
    if any(attrs["padding"][place]):
        signal = padded(plan, node, signal, low, filler)
    return [windowed(plan, node, [signal, *signals[1:]], Window(own, place, kernel))]


def _lowest(signal: Signal) -> float:
    kind = signal.value.dtype.numpy
    return -np.inf if kind.kind == "f" else int(np.iinfo(kind).min)


def conv_transposed(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for transposed convolutions: results are sums over the samples within the reach of the kernel."""
    signal, weight = signals
    attrs = plan.attrs(node)
    place = _time_in_window(plan, node, signal)
    if place < 0:
        return each_sample(plan, node, signals, 0, attrs)
    axis, stride = 2 + place, attrs["stride"][place]
    signal = plan.cleared(node, signal, 0.0)
    reach = (weight.shape[2 + place] - 1) * attrs["dilation"][place] + 1
    own, low = _opened(attrs, place)
    past = max(0, -(-(reach - stride) // stride))
    block = signal.block

    def sized(count: int) -> dict[str, Any]:
        sizes = list(own["size"])
        sizes[place] = max((count - 1) * stride + reach, count * stride)
        return {**own, "size": tuple(sizes)}

    at_tick = sized(past + block)

    def run(x: Any, w: Any) -> Sequence[Any]:
        return (cut(dispatch.apply(node.op, (x, w), at_tick), axis, past * stride, (past + block) * stride),)

    slot = plan.add(run, (plan.history(node, signal, past), weight.slot))[0]
    shape = resized([plan.size(n) for n in node.results[0].shape], axis, block * stride)
    prefix = None
    if signal.prefix is not None:
        if weight.constant is None:
            raise plan.unsupported(node, "samples before the first input would depend on an argument")
        found = node.op.evaluate([signal.prefix, weight.constant], sized(signal.known))[0]
        prefix = found[of_axis(axis, len(shape), slice(0, signal.known * stride))]
    whole = Signal(
        node.results[0], slot, shape, axis, block * stride, signal.delay * stride, prefix, signal.least * stride
    )
    return [dropped(node, whole, low)]


def gather(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for reads at positions: in a table by numbers that come in time, or of samples in a fixed pattern."""
    x, indices = signals
    attrs = plan.attrs(node)
    at = attrs["axis"] % x.rank
    if x.axis is None:
        if indices.axis is None:
            return latest(plan, node, signals)
        return each_sample(plan, node, signals, at + indices.axis, attrs)
    if x.axis != at:
        if indices.axis is not None:
            raise plan.unsupported(node, "reads of samples at positions of other samples")
        axis = x.axis if x.axis < at else x.axis - 1 + indices.rank
        return each_sample(plan, node, signals, axis, attrs)
    if is_own(signals) and (x.rows > 1 or not indices.positional):
        return read(plan, node, signals)
    if not indices.positional or indices.axis is None:
        if indices.positional or indices.constant is not None:
            raise plan.unsupported(node, "it takes single samples of the sequence")
        raise plan.whole(node, "it reads samples at positions that it computes")
    x, earlier = _first_read(plan, x, at)
    pattern = pattern_of(plan, indices.value, indices.axis, of=earlier)
    if pattern is None:
        raise plan.whole(node, "it reads samples in no regular pattern")
    return [_by_pattern(plan, node, x, indices, at, pattern)]


def _first_read(plan: Plan, x: Signal, axis: int) -> tuple[Signal, list[Value]]:
    """Return the signal whose samples reads of reads take, and the positions of the earlier reads, the last one first:
    a frame of reflected samples waits for its own samples only, not for all reflected ones before."""
    earlier = []
    while x.value.node.op is index.gather.op:
        source, indices = (plan.signals[v] for v in x.value.node.operands)
        if source.axis != axis or indices.axis != 0 or indices.rank != 1 or not indices.positional:
            break
        earlier.append(indices.value)
        x = source
    return x, earlier


def _by_pattern(plan: Plan, node: Node, x: Signal, indices: Signal, at: int, pattern: Pattern) -> Signal:
    """Read samples in a pattern that repeats: ``period`` results for ``shift`` samples."""
    shift = int(pattern.shift)
    if x.block % shift:
        raise Indivisible(shift, node, x.block)
    assert indices.axis is not None
    axis, block = at + indices.axis, x.block // shift * pattern.period
    delay = _ready(pattern, x.delay)
    rows = np.stack([pattern.regular(i - delay) for i in range(block)]).astype(np.int64)
    past = max(0, -x.delay - int(rows.min()), *(_far(t, pattern, x, block, delay) for t in range(len(pattern.start))))
    shape = resized([plan.size(n) for n in node.results[0].shape], axis, block)
    result, local = Signal(node.results[0], -1, shape, axis, block, delay), np.moveaxis(rows + x.delay, 0, indices.axis)
    if len(pattern.start):
        numbers = _at_start(plan, x, result, pattern, local + past, indices.axis, past)
        read = lambda samples, at_tick: (apply("gather", (samples, at_tick), {"axis": at}),)  # noqa: E731
        slot = plan.add(read, (plan.history(node, x, past), numbers))[0]
    else:
        blocks = (*x.shape[:at], *local.shape, *x.shape[at + 1 :])
        slot = plan.reshaped(plan.samples(node, x, local.reshape(-1)), blocks)
    prefix = None
    if delay < 0:
        assert x.prefix is not None
        known = np.moveaxis(np.stack([pattern.at(t) for t in range(-delay)]), 0, indices.axis)
        prefix = node.op.evaluate([x.prefix, known.astype(np.int64)], {"axis": at})[0]
    beyond = pattern.tail - plan.size(node.results[0].shape[axis]) + plan.ticks * block
    return replace(result, slot=slot, prefix=prefix, least=max(_ready(pattern, x.least), beyond))


def _ready(pattern: Pattern, delay: int) -> int:
    """Return the smallest delay of the results with which none is in a tick before the samples that it needs, if those
    have a delay. NOTE: a tick of one period is compared; blocks of several periods only add samples."""
    rows = [*enumerate(pattern.start), *((t, pattern.regular(t)) for t in range(pattern.period))]
    # Sample `last` is in period p of x if p * shift - delay <= last < (p + 1) * shift - delay, and result t is in that
    # period or a later one of the results if t + result's delay >= p * pattern.period.
    return max((int(row.max()) + delay) // int(pattern.shift) * pattern.period - t for t, row in rows)


def _far(t: int, pattern: Pattern, x: Signal, block: int, delay: int) -> int:
    """Return how many samples before its tick a result at the start needs."""
    return (t + delay) // block * x.block - x.delay - int(pattern.start[t].min())


def _at_start(plan: Plan, x: Signal, result: Signal, pattern: Pattern, local: np.ndarray, axis: int, past: int) -> int:
    """Return the slot of positions in the samples kept, where those of the first results follow no pattern."""
    count, block = len(pattern.start), result.block
    table = pattern.start.astype(np.int64)
    numbers = np.arange(block, dtype=np.int64)
    shape = tuple(block if i == axis else 1 for i in range(local.ndim))

    def run(first: Any, first_sample: Any) -> Sequence[Any]:
        number = apply("add", (constant(numbers), first), {})
        nearest = apply("clamp", (number, constant(np.asarray(0)), constant(np.asarray(count - 1))), {})
        early = apply("gather", (constant(table), nearest), {"axis": 0})
        if axis:
            early = apply("transpose", (early,), {"permutation": _moved(local.ndim, axis)})
        offset = apply("sub", (constant(np.asarray(past)), first_sample), {})
        starts = apply("eq", (number, nearest), {})
        starts = apply("reshape", (starts,), {"shape": shape})
        return (apply("where", (starts, apply("add", (early, offset), {}), constant(local)), {}),)

    return plan.add(run, (plan.start(result), plan.start(x)))[0]


def _moved(rank: int, axis: int) -> tuple[int, ...]:
    """Return the permutation that moves the first dimension to another place."""
    others = [*range(1, rank)]
    return (*others[:axis], 0, *others[axis:])
