"""Latency of single calls, made back to back or at a rate, by one caller or several."""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from graphc.base.records import dataclass

QUANTILES = (("min", 0.0), ("p10", 0.1), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0))
"""Quantile for each figure."""
SECOND = 1_000_000_000
"""Nanoseconds in a second."""
SLEEPS_NS = 200_000
"""Nanoseconds before a call is due at which its caller stops sleeping and starts to poll the clock."""
clock = time.perf_counter_ns
Call = Callable[[], Any]


class Pace(NamedTuple):
    """Schedule of the calls."""

    rate: float | None = None
    """Calls per second of all callers together; None: each call begins when the previous one ends."""
    clock_ns: int = 0
    """Cost of reading the clock, which is subtracted from each call's time."""


@dataclass
class Samples:
    """Measurements so far."""

    times: array[int] = field(default_factory=lambda: array("q"))
    """Nanoseconds of each call: from its start, or with a rate from the moment it was due."""
    medians: list[float] = field(default_factory=list)
    """Median seconds of a call, for each round."""
    seconds: float = 0.0
    """Seconds of all rounds together."""
    missed: int = 0
    """Calls that were due and never made, because earlier ones took too long."""

    def figures(self) -> dict[str, float]:
        """Return quantiles and mean in seconds, the number of calls, and calls per second."""
        times = np.frombuffer(self.times, np.int64) / SECOND
        figures = {name: float(np.quantile(times, share, method="inverted_cdf")) for name, share in QUANTILES}
        figures["mean"], figures["median"] = float(times.mean()), figures["p50"]
        return {**figures, "calls": len(times), "throughput": len(times) / self.seconds}


ROUND_CALLS = 10
"""Least number of calls in a round with a rate."""


def rounds_of(rounds: int, seconds: float, rate: float | None) -> int:
    """Return how many rounds to measure in ``seconds``: ``rounds``, or fewer if the rate is low."""
    return rounds if rate is None else max(min(rounds, int(rate * seconds / ROUND_CALLS)), 1)


def clock_cost() -> int:
    """Measure the nanoseconds between two consecutive readings of the clock."""
    times = [clock() for _ in range(2001)]
    return int(np.median(np.diff(times)))


def warm_up(calls: Sequence[Call], seconds: float) -> None:
    """Make calls for about ``seconds``, at least two by each caller."""
    end = time.perf_counter() + seconds
    for call in calls:
        call()
        call()
    while time.perf_counter() < end:
        calls[0]()


def measure_round(calls: Sequence[Call], seconds: float, pace: Pace, samples: Samples) -> None:
    """Make calls for about ``seconds`` and add their times to ``samples``.

    Each of several callers has its own thread and makes at least one call.
    """
    start = clock()
    before = len(samples.times)
    if len(calls) == 1:
        times_of_callers = [array("q")]
        samples.missed += _loop(calls[0], start, seconds, pace, 0, 1, times_of_callers[0], [])
    else:
        times_of_callers = _call_in_threads(calls, seconds, pace, samples)
    end = clock()
    for times in times_of_callers:
        samples.times.extend(times)
    samples.seconds += (end - start) / SECOND
    samples.medians.append(float(np.median(np.frombuffer(samples.times, np.int64)[before:])) / SECOND)


def _call_in_threads(calls: Sequence[Call], seconds: float, pace: Pace, samples: Samples) -> list[array[int]]:
    times_of_callers = [array("q") for _ in calls]
    missed, stop, errors = [0] * len(calls), [], []
    ready = threading.Barrier(len(calls) + 1)

    def run(i: int) -> None:
        ready.wait()
        try:
            missed[i] = _loop(calls[i], clock(), seconds, pace, i, len(calls), times_of_callers[i], stop)
        # NOTE: the calling thread raises the first of these errors after it has joined all threads.
        except Exception as error:
            errors.append(error)

    threads = [
        threading.Thread(target=run, args=(i,), name=f"graphc-caller-{i}", daemon=True) for i in range(len(calls))
    ]
    for thread in threads:
        thread.start()
    try:
        ready.wait()
        for thread in threads:
            thread.join()
    finally:
        stop.append(True)
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
    samples.missed += sum(missed)
    return times_of_callers


def _loop(
    call: Call, start: int, seconds: float, pace: Pace, caller: int, callers: int, times: array[int], stop: list[bool]
) -> int:
    """Make the calls of one caller and return how many it missed. A non-empty ``stop`` ends the loop."""
    if pace.rate is not None:
        period = callers / pace.rate * SECOND
        count = max(round(seconds * SECOND / period), 1)
        return _paced(call, start + period * caller / callers, period, count, times, stop)
    until, cost = start + int(seconds * SECOND), pace.clock_ns
    while True:
        begin = clock()
        call()
        end = clock()
        times.append(max(end - begin - cost, 1))
        if end >= until or stop:
            return 0


def _paced(call: Call, due: float, period: float, count: int, times: array[int], stop: list[bool]) -> int:
    """Make ``count`` calls, one every ``period`` nanoseconds, and return how many were missed.

    A call's time counts from the moment it was due, so it includes the wait for earlier calls. If the calls are late by
    twice the planned duration, the rest are missed.
    """
    give_up = due + 2 * period * count
    for done in range(count):
        _wait(due)
        call()
        now = clock()
        times.append(int(now - due))
        due += period
        if stop or now > give_up:
            return count - done - 1
    _wait(due)
    return 0


def _wait(due: float) -> None:
    remaining = due - clock()
    if remaining > SLEEPS_NS:
        time.sleep((remaining - SLEEPS_NS) / SECOND)
    while clock() < due:
        pass
