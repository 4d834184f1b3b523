"""Times of the parts of a native program, and what the machine can do at best: multiply-adds and copies."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from graphc.runtime.arena import address_of
from graphc.runtime.call import Executable
from graphc.runtime.loader import Library, load_object

COPY_BYTES = 96 << 20
"""Bytes that are copied to measure bandwidth: more than caches hold."""
_CALIBRATION = 0.02
"""Seconds for which the cycle counter is compared with the clock."""


@dataclass(frozen=True)
class Times:
    """Figures over the rounds, in seconds."""

    calls: tuple[float, ...]
    """One per call of a kernel, without the cost of taking the time; at least one count of the counter."""
    total: float
    """From before the first kernel to after the last one."""
    rounds: int
    least: float = 0.0
    """What taking the time costs: of calls that take less, these figures say little more than that."""


def time_calls(
    program: Executable,
    inputs: Sequence[np.ndarray],
    bound: Sequence[np.ndarray],
    seconds: float,
    rounds: int,
    quantile: float = 0.5,
) -> Times:
    """Times the kernels of a stamped program (see llvm.entry), whose last output holds the stamps. It runs for about
    ``seconds``, at least three times and at most ``rounds`` times, after one time that does not count; outputs lie in
    the same memory each time. The figures are medians, or another ``quantile`` (0 is the best round)."""
    bound = tuple(bound)
    out = program.run(inputs, bound)
    rows: list[np.ndarray] = []
    begin = time.perf_counter()
    while len(rows) < 3 or (len(rows) < rounds and time.perf_counter() - begin < seconds):
        rows.append(program.run(inputs, bound, out)[-1].copy())
    # NOTE: the counter's rate is taken from the program itself, run until that is exact.
    first, last = rows[0][0], rows[-1][-1]
    end = time.perf_counter()
    while end - begin < _CALIBRATION:
        last = program.run(inputs, bound, out)[-1][-1]
        end = time.perf_counter()
    return _figures(np.stack(rows), (end - begin) / max(1, int(last) - int(first)), quantile)


def _figures(stamps: np.ndarray, tick: float, quantile: float) -> Times:
    """``stamps``: i64[rounds, calls + 2]; ``tick``: seconds per count."""
    steps = np.diff(stamps, axis=1)
    calls = np.quantile(np.maximum(steps[:, 1:] - steps[:, :1], 1), quantile, axis=0) * tick
    total = float(np.quantile(stamps[:, -1] - stamps[:, 1], quantile)) * tick
    least = float(np.quantile(steps[:, 0], quantile)) * tick
    return Times(tuple(float(c) for c in calls), total, len(stamps), least)


@dataclass(frozen=True)
class Machine:
    """What one core does at best, measured in this process."""

    flops: float
    """Operations on f32 per second, multiply and add counted as two."""
    bandwidth: float
    """Bytes read and written per second by a copy of a large block."""


def measure_peak(code: bytes, symbol: str, flops_per_round: int) -> float:
    """Operations per second of the function of machine.probe in trusted object code: the best of several tries."""
    library = load_object(code, symbol)
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
