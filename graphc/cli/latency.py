"""How long calls take, one by one: callers in a loop or at a rate, one or several at a time."""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

QUANTILES = (("min", 0.0), ("p10", 0.1), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0))
"""Figures by the share of calls that take no longer."""
SECOND = 1_000_000_000
"""Nanoseconds."""
SLEEPS_NS = 200_000
"""How long before a call is due a caller wakes up, to be awake when it is."""
clock = time.perf_counter_ns
Call = Callable[[], Any]


class Pace(NamedTuple):
    """How calls follow each other."""

    rate: float | None = None
    """Calls per second, of all callers together; None: each call begins when the one before is done."""
    clock_ns: int = 0
    """What reading the clock takes, which is no part of a call."""


@dataclass
class Samples:
    """What was measured so far."""

    times: array[int] = field(default_factory=lambda: array("q"))
    """Nanoseconds of each call: from its begin, or at a rate from when it was due."""
    medians: list[float] = field(default_factory=list)
    """Seconds: of each round."""
    seconds: float = 0.0
    """How long the rounds took together."""
    missed: int = 0
    """Calls that were due and not made, as all before them took too long."""

    def figures(self) -> dict[str, float]:
        """Seconds of a call, how many there were, and how many in a second."""
        times = np.frombuffer(self.times, np.int64) / SECOND
        found = {name: float(np.quantile(times, share, method="inverted_cdf")) for name, share in QUANTILES}
        found["mean"], found["median"] = float(times.mean()), found["p50"]
        return {**found, "calls": len(times), "throughput": len(times) / self.seconds}


ROUND_CALLS = 10
"""How many calls a round has at least where they come at a rate."""


def rounds_of(rounds: int, seconds: float, rate: float | None) -> int:
    """In how many rounds to measure for so many seconds, of so many that are asked for."""
    return rounds if rate is None else max(min(rounds, int(rate * seconds / ROUND_CALLS)), 1)


def clock_cost() -> int:
    """Nanoseconds between two readings of the clock that follow each other."""
    times = [clock() for _ in range(2001)]
    return int(np.median(np.diff(times)))


def warm_up(calls: Sequence[Call], seconds: float) -> None:
    """Calls for about so long, and twice at least."""
    end = time.perf_counter() + seconds
    for call in calls:
        call()
        call()
    while time.perf_counter() < end:
        calls[0]()


def measure_round(calls: Sequence[Call], seconds: float, pace: Pace, samples: Samples) -> None:
    """Adds what about so many seconds of calls take; each caller has a thread of its own, and one call at least."""
    start = clock()
    before = len(samples.times)
    if len(calls) == 1:
        found = [array("q")]
        samples.missed += _loop(calls[0], start, seconds, pace, 0, 1, found[0], [])
    else:
        found = _together(calls, seconds, pace, samples)
    end = clock()
    for times in found:
        samples.times.extend(times)
    samples.seconds += (end - start) / SECOND
    samples.medians.append(float(np.median(np.frombuffer(samples.times, np.int64)[before:])) / SECOND)


def _together(calls: Sequence[Call], seconds: float, pace: Pace, samples: Samples) -> list[array[int]]:
    found = [array("q") for _ in calls]
    missed, stop, errors = [0] * len(calls), [], []
    ready = threading.Barrier(len(calls) + 1)

    def run(i: int) -> None:
        ready.wait()
        try:
            missed[i] = _loop(calls[i], clock(), seconds, pace, i, len(calls), found[i], stop)
        # NOTE: whatever a thread raises is raised where all are waited for.
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
    return found


def _loop(
    call: Call, start: int, seconds: float, pace: Pace, caller: int, callers: int, times: array[int], stop: list[bool]
) -> int:
    """The calls of one caller; how many it missed. ``stop`` is filled where it shall end."""
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
    """So many calls, one at each time that is due. One that begins late, as those before it took long, has waited since
    then: that is part of its time. Where calls are late by as long as all should take, the rest is missed."""
    give_up = due + 2 * period * count
    for made in range(count):
        _wait(due)
        call()
        now = clock()
        times.append(int(now - due))
        due += period
        if stop or now > give_up:
            return count - made - 1
    _wait(due)
    return 0


def _wait(due: float) -> None:
    left = due - clock()
    if left > SLEEPS_NS:
        time.sleep((left - SLEEPS_NS) / SECOND)
    while clock() < due:
        pass
