"""Times from stamps, and what the machine does at best."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.compiler.profile import measure_machine
from graphc.runtime.profile import COPY_BYTES, around, copy_bandwidth, figures


def words(*calls: tuple[int, ...], stamp: int = 10, first: int = 70, runs: tuple[int, ...] = (1, 1)) -> np.ndarray:
    """Return the words that a stamped program writes for calls of these counts; each stamp takes some more."""
    rows = []
    for took in calls:
        steps = [first, first, *[stamp] * 6, *(t + stamp for t in took)]
        rows.append([9, 1000, *(1000 + np.cumsum(steps)), *runs])
    return np.array(rows, np.int64)


def test_figures_are_without_the_cost_of_a_stamp():
    times = figures(words((90, 200), (100, 200), (900, 600)), 0.5)
    assert times.stamp == 5.0 and times.rounds == 3 and times.tick == 0.5
    best = figures(words((90, 200), (100, 200), (900, 600)), 0.5, quantile=0.0)
    assert best.calls == (45.0, 100.0) and best.total == 145.0
    assert times.spread[0] == (45.0, 47.5, 250.0)


def test_a_repeated_call_is_without_the_cost_of_all_its_stamps():
    assert figures(words((100, 100), runs=(1, 5)), 1.0).calls == (100.0, 60.0)


def test_what_is_shorter_than_a_stamp_takes_no_time():
    times = figures(words((100, -4)), 0.25)
    assert times.calls == (25.0, 0.0) and times.spread[1] == (0.0, 0.0, 0.0)


def test_the_resolution_is_a_step_of_the_counter_and_what_a_stamp_varies_by():
    assert figures(words((100, 20), (100, 20)), 0.5).resolution == 5.0
    times = figures(words((100, 20), stamp=10), 0.5)
    mixed = np.concatenate([words((100, 20), stamp=10), words((100, 20), stamp=20)])
    assert times.resolution == 5.0 and figures(mixed, 0.5).resolution == 10.0


def test_figures_are_means_of_the_rounds_around_a_quantile():
    rounds = np.array([5.0, 1.0, 4.0, 2.0, 3.0])
    assert around(rounds, 0.5) == 3.0 and around(rounds, 0.0) == 1.0 and around(rounds, 1.0) == 5.0
    assert around(np.array([1.0, 2.0, 2.0, 3.0, 100.0]), 0.5) == pytest.approx(7 / 3)


def test_bandwidth_is_that_of_memory():
    assert COPY_BYTES > 1 << 26
    assert 1e8 < copy_bandwidth(1 << 24) < 1e13
    assert copy_bandwidth(1 << 24) == copy_bandwidth(1 << 24)


def test_the_machine_is_measured_once():
    machine = measure_machine()
    assert machine is measure_machine() and machine.flops == pytest.approx(machine.flops)
    assert 1e8 < machine.flops < 1e13
