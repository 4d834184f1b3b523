"""Compares streams of nets with whole sequences, sample by sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import graphc as gc
from graphc.streams.signal import Signal
from graphc.streams.stream import Stream
from graphc.tensors.structure import flatten
from tests.streams.cases import TIME, Case

_TOLERANCE = 1e-6
"""Largest accepted difference, of the largest number."""


def whole(case: Case, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the outputs of the net for a whole sequence."""
    return [_array(x) for x in flatten(case.model(*map(gc.from_numpy, arrays)))[0]]


def part(case: Case, arrays: Sequence[np.ndarray], first: int, last: int) -> list[np.ndarray]:
    """Return samples of the inputs; one without time stays as it is."""
    found = []
    for shape, array in zip(case.shapes, arrays, strict=True):
        index = tuple(slice(first, last) if n == TIME else slice(None) for n in shape)
        found.append(np.ascontiguousarray(array[index]))
    return found


def run(stream: Stream, case: Case, arrays: Sequence[np.ndarray], first: int, last: int) -> list[np.ndarray]:
    """Return the outputs for the samples ``first`` to ``last - 1``, one tick after the other, without compiling."""
    ticks = []
    for start in range(first, last, stream.tick):
        inputs = part(case, arrays, start, start + stream.tick)
        ticks.append([_array(x) for x in flatten(stream.module(*map(gc.from_numpy, inputs)))[0]])
    return joined(ticks, stream.axes)


def joined(ticks: Sequence[Sequence[np.ndarray]], axes: Sequence[int | None]) -> list[np.ndarray]:
    """Return outputs of ticks as those of a sequence."""
    found = []
    for index, axis in enumerate(axes):
        parts = [tick[index] for tick in ticks]
        found.append(parts[-1] if axis is None else np.concatenate(parts, axis))
    return found


def _array(x: Any) -> np.ndarray:
    return np.array(x.detach().numpy())


def expect_equal(actual: np.ndarray, expected: np.ndarray) -> None:
    """Check that numbers are the same, apart from rounding."""
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    if actual.dtype.kind != "f":
        assert np.array_equal(actual, expected)
        return
    assert np.isfinite(actual).all()
    largest = float(np.abs(expected).max(initial=0))
    assert float(np.abs(actual - expected).max(initial=0)) <= _TOLERANCE * largest


def expect_output(actual: np.ndarray, signal: Signal, longer: np.ndarray, shorter: np.ndarray) -> None:
    """Check an output against those of the sequence, and of one that goes on after it.

    Zeros come before the sequence. A stream that looks ahead equals the longer sequence only.
    """
    if signal.axis is None:
        expect_equal(actual, shorter)
        return
    actual, longer, shorter = (np.moveaxis(x, signal.axis, 0) for x in (actual, longer, shorter))
    before, actual = actual[: signal.delay], actual[signal.delay :]
    assert not before.any()
    assert len(actual)
    assert len(actual) <= len(longer)
    expect_equal(actual, longer[: len(actual)])
    if signal.ahead <= 0:
        count = min(len(actual), len(shorter))
        assert count
        expect_equal(actual[:count], shorter[:count])


def _ticks_of(stream: Stream) -> int:
    """Return a number of ticks in which each output gives samples."""
    late = max((-(-s.delay // s.block) for s in stream.outputs if s.axis is not None), default=0)
    return max(2, 24 // stream.tick) + late


def expect_stream(case: Case, step: int | None = None) -> Stream:
    """Check the stream of a net with ticks of ``step`` samples: its numbers, a second sequence, saved states."""
    stream = case.stream(step)
    count = _ticks_of(stream) * stream.tick
    middle = count // stream.tick // 2 * stream.tick
    arrays = case.inputs(count + 2 * case.length)
    first = run(stream, case, arrays, 0, middle)
    state = stream.state
    second = run(stream, case, arrays, middle, count)
    found = joined([first, second], stream.axes)
    longer, shorter = whole(case, arrays), whole(case, part(case, arrays, 0, count))
    for actual, signal, *expected in zip(found, stream.outputs, longer, shorter, strict=True):
        expect_output(actual, signal, *expected)
    stream.state = state
    _expect_same(run(stream, case, arrays, middle, count), second)
    fresh = stream.fresh()
    stream.reset()
    for other in (stream, fresh):
        _expect_same(run(other, case, arrays, 0, middle), first)
    return stream


def _expect_same(actual: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    for a, b in zip(actual, expected, strict=True):
        assert np.array_equal(a, b)


def expect_all_steps(case: Case) -> None:
    """Check the stream of a net with the smallest step, and steps near 7 and 64 samples."""
    smallest = expect_stream(case).tick
    for near in (7, 64):
        expect_stream(case, max(2, round(near / smallest)) * smallest)
