"""Latency of calls: samples, rounds, callers, calls at a rate."""

from __future__ import annotations

import threading
from array import array
from itertools import accumulate, chain, repeat

import pytest

from graphc.cli import latency
from graphc.cli.latency import SECOND, Pace, Samples, clock_cost, measure_round, rounds_of, warm_up


class Clock:
    """A clock that only moves when somebody waits or works."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.now = 0
        monkeypatch.setattr(latency, "clock", self.read)
        monkeypatch.setattr(latency.time, "sleep", lambda seconds: self.work(int(seconds * SECOND)))

    def read(self) -> int:
        self.now += 1
        return self.now

    def work(self, nanoseconds: int) -> None:
        self.now += nanoseconds


def test_figures_are_those_of_samples():
    samples = Samples(array("q", range(1, 1001)), seconds=2.0)
    found = samples.figures()
    wanted = {"min": 1, "p10": 100, "p50": 500, "p90": 900, "p99": 990, "p99.9": 999, "max": 1000, "mean": 500.5}
    assert {name: pytest.approx(value * 1e-9) for name, value in wanted.items()}.items() <= found.items()
    assert (found["calls"], found["throughput"], found["median"]) == (1000, 500.0, found["p50"])


def test_calls_follow_each_other_for_the_time_of_a_round(monkeypatch: pytest.MonkeyPatch):
    clock, samples = Clock(monkeypatch), Samples()
    measure_round([lambda: clock.work(1000)], 10_000e-9, Pace(clock_ns=1), samples)
    assert list(samples.times) == [1000] * 10 and samples.medians == [pytest.approx(1e-6)]
    measure_round([lambda: clock.work(50_000)], 1e-9, Pace(clock_ns=1), samples)
    assert samples.times[-1] == 50_000 and samples.medians[-1] == pytest.approx(50e-6)


def test_a_call_at_a_rate_counts_from_when_it_was_due(monkeypatch: pytest.MonkeyPatch):
    clock, samples = Clock(monkeypatch), Samples()
    times = iter([25_000, 100, 100, 100])
    measure_round([lambda: clock.work(next(times))], 40e-6, Pace(rate=1e5), samples)
    first, second, third, fourth = samples.times
    assert first == pytest.approx(25_000, abs=20)
    assert second == pytest.approx(25_000 - 10_000 + 100, abs=20)
    assert third == pytest.approx(25_000 - 20_000 + 200, abs=20)
    assert fourth == pytest.approx(100, abs=20)
    assert samples.missed == 0 and samples.seconds >= 40e-6


def test_calls_that_cannot_be_served_are_missed(monkeypatch: pytest.MonkeyPatch):
    clock, samples = Clock(monkeypatch), Samples()
    measure_round([lambda: clock.work(30_000)], 100e-6, Pace(rate=1e5), samples)
    assert len(samples.times) == 7 and samples.missed == 3


def test_callers_have_threads_of_their_own_and_share_the_rate():
    seen: list[set[int]] = [set(), set()]
    calls = [lambda i=i: seen[i].add(threading.get_ident()) for i in range(2)]
    samples = Samples()
    measure_round(calls, 0.02, Pace(rate=1000), samples)
    assert len(samples.times) == 20 and all(len(threads) == 1 for threads in seen)
    assert threading.get_ident() not in seen[0] | seen[1]


def test_what_a_caller_raises_comes_out():
    def fails() -> None:
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        measure_round([fails, fails], 0.01, Pace(), Samples())


def test_everyone_is_called_before_it_counts():
    counts = [0, 0]

    def call(i: int) -> None:
        counts[i] += 1

    warm_up([lambda: call(0), lambda: call(1)], 0.0)
    assert counts == [2, 2]


def test_the_cost_of_the_clock_is_the_usual_distance_of_two_readings(monkeypatch):
    readings = accumulate(chain([0, SECOND], repeat(30)))  # another process ran after the first one
    monkeypatch.setattr(latency, "clock", lambda: next(readings))
    assert clock_cost() == 30


@pytest.mark.parametrize(("rate", "rounds"), [(None, 30), (1e6, 30), (100, 10), (1, 1), (0.001, 1)])
def test_rounds_at_a_rate_have_calls(rate: float | None, rounds: int):
    assert rounds_of(30, 1.0, rate) == rounds
