"""Timing of a program's kernels, and the peaks of the machine: multiply-adds and copies."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from functools import cache

import numpy as np

from graphc.base.records import dataclass
from graphc.files.manifest import TargetSpec
from graphc.runtime.arena import address_of
from graphc.runtime.call import Executable
from graphc.runtime.loader import Library, load_object

COPY_BYTES = 96 << 20
"""Bytes of the copy that measures bandwidth: more than caches hold."""
_CALIBRATION = 0.02
"""Seconds over which the cycle counter is compared with the clock."""
_COLD = 2
"""Number of stamp intervals at the start that are dropped: code and memory are in no cache yet."""
_LEAST_ROUNDS = 3
_ANCHORS = 5
"""Number of calls, of which the shortest compares the counter with the clock."""


@dataclass(frozen=True)
class Times:
    """Figures over the rounds in seconds, without the cost of the stamps."""

    calls: tuple[float, ...]
    """One figure per call of a kernel; none is negative."""
    total: float
    """Time from before the first kernel to after the last one."""
    rounds: int
    resolution: float = 0.0
    """Shortest measurable time: one step of the counter plus the variation of a stamp's cost. Figures of shorter calls
    mean little."""
    stamp: float = 0.0
    """Cost of a stamp, already subtracted."""
    spread: tuple[tuple[float, float, float], ...] = ()
    """Per call, the best round and the first and third quartiles of the rounds."""
    tick: float = 0.0
    """Seconds per count of the counter."""


def time_calls(
    program: Executable,
    inputs: Sequence[np.ndarray],
    bound: Sequence[np.ndarray],
    seconds: float,
    rounds: int,
    quantile: float = 0.5,
) -> Times:
    """Time the calls of kernels of one stamped program, as ``time_programs`` does."""
    return time_programs([program], inputs, [bound], seconds, rounds, quantile)[0]


def time_programs(
    programs: Sequence[Executable],
    inputs: Sequence[np.ndarray],
    bound: Sequence[Sequence[np.ndarray]],
    seconds: float,
    rounds: int,
    quantile: float = 0.5,
) -> list[Times]:
    """Time stamped programs (see llvm.stamps) in alternating rounds; their last output holds the stamps.

    They run for about ``seconds``, at least three and at most ``rounds`` times, after one warm-up call. Each round
    writes its outputs to the same memory. ``bound`` holds the bound arrays of each program. A figure is the mean of the
    rounds around a ``quantile``: of the middle half for the median, or of the best round alone for 0.
    """
    trials = [_Trial(program, inputs, tuple(arrays)) for program, arrays in zip(programs, bound, strict=True)]
    begin, first = trials[-1].anchor()
    while (done := len(trials[0].rows)) < _LEAST_ROUNDS or (done < rounds and time.perf_counter() - begin < seconds):
        for trial in trials:
            trial.run()
    # NOTE: a program itself calibrates the counter; it runs until the rate is exact.
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
    """Return the seconds added by a call from Python to the native time of a stamped program, with new outputs each
    time. ``tick`` is as in ``Times``. The measurement takes about ``seconds``, and at most ``rounds`` calls."""
    bound, overheads = tuple(bound), list[float]()
    begin = time.perf_counter()
    while len(overheads) < _LEAST_ROUNDS or (len(overheads) < rounds and time.perf_counter() - begin < seconds):
        start = time.perf_counter()
        words = program.run(inputs, bound)[-1]
        overheads.append(time.perf_counter() - start - float(_last(words) - words[1]) * tick)
    return max(0.0, float(around(np.array(overheads), 0.5)))


def _count(words: np.ndarray) -> int:
    """Return the number of kernel calls after the stamps at the start."""
    return (len(words) - 1 - int(words[0])) // 2


def _last(words: np.ndarray) -> int:
    """Return the last stamp."""
    return words[int(words[0]) + _count(words)]


class _Trial:
    """A program under test, with the stamps of its rounds."""

    def __init__(self, program: Executable, inputs: Sequence[np.ndarray], bound: tuple[np.ndarray, ...]):
        self.call = lambda: program.run(inputs, bound, out)[-1]
        out = program.run(inputs, bound)
        self.rows: list[np.ndarray] = []

    def anchor(self) -> tuple[float, int]:
        """Return the time at the end of a call, and its last stamp. Of a few calls, take the shortest: this thread may
        have had to wait between the stamp and the clock. For long calls that wait is negligible."""
        shortest, end_and_stamp = float("inf"), (0.0, 0)
        for _ in range(_ANCHORS):
            start = time.perf_counter()
            last, end = _last(self.call()), time.perf_counter()
            if end - start < shortest:
                shortest, end_and_stamp = end - start, (end, int(last))
            if shortest > _CALIBRATION:
                break
        return end_and_stamp

    def run(self) -> None:
        """Make a call and record its stamps."""
        self.rows.append(self.call().copy())


def figures(words: np.ndarray, tick: float, quantile: float = 0.5) -> Times:
    """Return the figures of rounds. ``words``: i64[rounds, words], as llvm.stamps has them; ``tick``: seconds per
    count; ``quantile`` as in ``time_programs``."""
    lead = int(words[0, 0])
    count = _count(words[0])
    steps, pairs = np.diff(words[:, 1 : 1 + lead + count], axis=1), words[:, 1 + lead + count :]
    empty, calls = steps[:, _COLD : lead - 1], steps[:, lead - 1 :]
    cost = float(around(empty.ravel(), 0.5))
    net = calls - cost * pairs
    low, high = np.quantile(empty, (0.1, 0.9))
    resolution = (_step_of(steps) + float(high - low)) * tick
    spent = np.maximum(around(net, quantile), 0.0) * tick
    spread = np.maximum(np.quantile(net, (0.0, 0.25, 0.75), axis=0), 0.0).T * tick
    total = max(0.0, float(around(net.sum(axis=1), quantile))) * tick
    each = tuple((float(a), float(b), float(c)) for a, b, c in spread)
    return Times(tuple(map(float, spent)), total, len(words), resolution, cost * tick, each, tick)


def around(rounds: np.ndarray, quantile: float) -> np.ndarray:
    """Return the mean of the rounds (first axis) near a quantile. It resolves less than a step of the counter, unlike
    the median, and leaves out the rounds in which something else ran."""
    ordered, last, width = np.sort(rounds, axis=0), len(rounds) - 1, min(quantile, 1 - quantile) / 2
    first, end = int(np.floor((quantile - width) * last)), int(np.ceil((quantile + width) * last))
    return ordered[first : end + 1].mean(axis=0)


def _step_of(steps: np.ndarray) -> int:
    """Return the smallest step of the counter in counts: all times between stamps are multiples of it."""
    return int(np.gcd.reduce(steps.ravel()))


@dataclass(frozen=True)
class Machine:
    """Measured peaks of one core in this process."""

    flops: float
    """f32 operations per second; a multiply-add counts as two."""
    bandwidth: float
    """Bytes read and written per second by a copy of a large block."""


def measure_peak(code: bytes, symbol: str, flops_per_round: int, target: TargetSpec) -> float:
    """Return the operations per second of the function of machine.probe in trusted object code built for
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
    """Return the bytes read and written per second by copies of ``nbytes`` bytes: the best of several tries."""
    source, target = np.ones(nbytes, np.uint8), np.ones(nbytes, np.uint8)
    best = float("inf")
    for _ in range(6):
        start = time.perf_counter()
        ctypes.memmove(address_of(target), address_of(source), nbytes)
        best = min(best, time.perf_counter() - start)
    return 2 * nbytes / best
