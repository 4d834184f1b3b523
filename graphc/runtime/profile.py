"""Times of the parts of a native program, and what the machine can do at best: multiply-adds and copies."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from graphc.files.manifest import TargetSpec
from graphc.runtime.arena import address_of
from graphc.runtime.call import Executable
from graphc.runtime.loader import Library, load_object

COPY_BYTES = 96 << 20
"""Bytes that are copied to measure bandwidth: more than caches hold."""
_CALIBRATION = 0.02
"""Seconds for which the cycle counter is compared with the clock."""
_COLD = 2
"""Of the times between the stamps at the start, those that are left out: code and memory are in no cache yet."""
_LEAST_ROUNDS = 3
_ANCHORS = 5
"""Calls of which the shortest compares the counter with the clock."""


@dataclass(frozen=True)
class Times:
    """Figures over the rounds, in seconds, without what the stamps cost."""

    calls: tuple[float, ...]
    """One per call of a kernel; none is negative."""
    total: float
    """From before the first kernel to after the last one."""
    rounds: int
    resolution: float = 0.0
    """What is told from nothing: a step of the counter and what the cost of a stamp varies by, together. Of calls that
    take less, the figures say little more than that."""
    stamp: float = 0.0
    """What a stamp costs, which is taken off."""
    spread: tuple[tuple[float, float, float], ...] = ()
    """Per call the best round, and those below which a quarter and three quarters of the rounds lie."""
    tick: float = 0.0
    """A count of the counter."""


def time_calls(
    program: Executable,
    inputs: Sequence[np.ndarray],
    bound: Sequence[np.ndarray],
    seconds: float,
    rounds: int,
    quantile: float = 0.5,
) -> Times:
    """Times the calls of kernels of a stamped program as ``time_programs`` does."""
    return time_programs([program], inputs, [bound], seconds, rounds, quantile)[0]


def time_programs(
    programs: Sequence[Executable],
    inputs: Sequence[np.ndarray],
    bound: Sequence[Sequence[np.ndarray]],
    seconds: float,
    rounds: int,
    quantile: float = 0.5,
) -> list[Times]:
    """Times stamped programs (see llvm.stamps), whose last output holds the stamps, in alternating rounds. They run for
    about ``seconds``, at least three times and at most ``rounds`` times, after one time that does not count; outputs
    lie in the same memory each time. ``bound`` are the arrays of each program. A figure is the mean of the rounds
    around a ``quantile``: of the half around the median, or of the best round alone for 0."""
    trials = [_Trial(program, inputs, tuple(arrays)) for program, arrays in zip(programs, bound, strict=True)]
    begin, first = trials[-1].anchor()
    while (done := len(trials[0].rows)) < _LEAST_ROUNDS or (done < rounds and time.perf_counter() - begin < seconds):
        for trial in trials:
            trial.run()
    # NOTE: the counter's rate is taken from a program itself, run until that is exact.
    while time.perf_counter() - begin < _CALIBRATION:
        trials[-1].call()
    end, last = trials[-1].anchor()
    tick = (end - begin) / max(1, last - first)
    return [figures(np.stack(trial.rows), tick, quantile) for trial in trials]


def call_overhead(
    program: Executable,
    inputs: Sequence[np.ndarray],
    bound: Sequence[np.ndarray],
    tick: float,
    seconds: float,
    rounds: int,
) -> float:
    """Seconds that a call of a stamped program from Python adds to what it takes natively, with new outputs each time;
    ``tick`` as in ``Times``. It takes about ``seconds``, and at most ``rounds`` calls."""
    bound, found = tuple(bound), list[float]()
    begin = time.perf_counter()
    while len(found) < _LEAST_ROUNDS or (len(found) < rounds and time.perf_counter() - begin < seconds):
        start = time.perf_counter()
        words = program.run(inputs, bound)[-1]
        found.append(time.perf_counter() - start - float(_last(words) - words[1]) * tick)
    return max(0.0, float(around(np.array(found), 0.5)))


def _count(words: np.ndarray) -> int:
    """How many calls of kernels there are behind the stamps at the start."""
    return (len(words) - 1 - int(words[0])) // 2


def _last(words: np.ndarray) -> int:
    """The last stamp."""
    return words[int(words[0]) + _count(words)]


class _Trial:
    """A program that is run again and again, with what it wrote down."""

    def __init__(self, program: Executable, inputs: Sequence[np.ndarray], bound: tuple[np.ndarray, ...]):
        self.call = lambda: program.run(inputs, bound, out)[-1]
        out = program.run(inputs, bound)
        self.rows: list[np.ndarray] = []

    def anchor(self) -> tuple[float, int]:
        """The time at the end of a call, and its last stamp: of a few calls the one that took the least, as this thread
        may have had to wait between the two. Of a call that takes long that is little beside it."""
        shortest, found = float("inf"), (0.0, 0)
        for _ in range(_ANCHORS):
            start = time.perf_counter()
            last, end = _last(self.call()), time.perf_counter()
            if end - start < shortest:
                shortest, found = end - start, (end, int(last))
            if shortest > _CALIBRATION:
                break
        return found

    def run(self) -> None:
        """Makes a call that counts."""
        self.rows.append(self.call().copy())


def figures(words: np.ndarray, tick: float, quantile: float = 0.5) -> Times:
    """The figures of rounds. ``words``: i64[rounds, words], as llvm.stamps has them; ``tick``: seconds per count;
    ``quantile`` as of ``time_programs``."""
    lead = int(words[0, 0])
    count = _count(words[0])
    steps, pairs = np.diff(words[:, 1 : 1 + lead + count], axis=1), words[:, 1 + lead + count :]
    empty, calls = steps[:, _COLD : lead - 1], steps[:, lead - 1 :]
    cost = float(around(empty.ravel(), 0.5))
    taken = calls - cost * pairs
    low, high = np.quantile(empty, (0.1, 0.9))
    resolution = (_step_of(steps) + float(high - low)) * tick
    spent = np.maximum(around(taken, quantile), 0.0) * tick
    spread = np.maximum(np.quantile(taken, (0.0, 0.25, 0.75), axis=0), 0.0).T * tick
    total = max(0.0, float(around(taken.sum(axis=1), quantile))) * tick
    each = tuple((float(a), float(b), float(c)) for a, b, c in spread)
    return Times(tuple(map(float, spent)), total, len(words), resolution, cost * tick, each, tick)


def around(rounds: np.ndarray, quantile: float) -> np.ndarray:
    """The mean of the rounds (first axis) near a quantile. It tells less than a step of the counter where the median
    does not, and leaves out the rounds in which something else ran."""
    ordered, last, width = np.sort(rounds, axis=0), len(rounds) - 1, min(quantile, 1 - quantile) / 2
    first, end = int(np.floor((quantile - width) * last)), int(np.ceil((quantile + width) * last))
    return ordered[first : end + 1].mean(axis=0)


def _step_of(steps: np.ndarray) -> int:
    """Counts by which the counter goes on at least: all times between stamps are multiples of it."""
    return int(np.gcd.reduce(steps.ravel()))


@dataclass(frozen=True)
class Machine:
    """What one core does at best, measured in this process."""

    flops: float
    """Operations on f32 per second, multiply and add counted as two."""
    bandwidth: float
    """Bytes read and written per second by a copy of a large block."""


def measure_peak(code: bytes, symbol: str, flops_per_round: int, target: TargetSpec) -> float:
    """Return the operations per second of the function of machine.probe in trusted object code that was built for
    ``target``: the best of several tries."""
    library = load_object(code, symbol, target)
    rounds = 1 << 12
    elapsed = _run_peak(library, rounds)
    while elapsed < 4e-3:
        rounds *= 2
        elapsed = _run_peak(library, rounds)
    best = min(_run_peak(library, rounds) for _ in range(8))
    return rounds * flops_per_round / best


def _run_peak(library: Library, rounds: int) -> float:
    number, result = np.array([rounds], np.int64), np.zeros(64, np.float32)
    table = (ctypes.c_size_t * 2)(address_of(number), address_of(result))
    start = time.perf_counter()
    library.entry(ctypes.addressof(table))
    return time.perf_counter() - start


@cache
def copy_bandwidth(nbytes: int = COPY_BYTES) -> float:
    """Bytes read and written per second when a block of ``nbytes`` is copied: the best of several tries."""
    source, target = np.ones(nbytes, np.uint8), np.ones(nbytes, np.uint8)
    best = float("inf")
    for _ in range(6):
        start = time.perf_counter()
        ctypes.memmove(address_of(target), address_of(source), nbytes)
        best = min(best, time.perf_counter() - start)
    return 2 * nbytes / best
