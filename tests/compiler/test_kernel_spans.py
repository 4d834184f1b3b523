"""Spans of kernels: places of stamps in the time of their run."""

import numpy as np
import pytest

from graphc.base.progress import KERNEL
from graphc.compiler.explain import KernelReport
from graphc.compiler.kernel_spans import KernelTimer, TimedRun


def report(name: str) -> KernelReport:
    empty: tuple = ()
    return KernelReport(
        0, name, "map", ("add",), ("fc",), "net.py:1", empty, empty, "", False, 1, empty, empty, flops=8, bytes=32
    )


def timed(begin: float, end: float, stamps: list[int], runs: list[int]) -> TimedRun:
    words = np.array([len(stamps) - len(runs), *stamps, *runs], np.int64)
    return TimedRun([report(f"k{i}") for i in range(len(runs))], begin, end, 7, words)


def test_kernels_lie_in_the_middle_of_their_run():
    timer = KernelTimer()
    timer._runs = [timed(0.0, 1.0, [100, 200, 400], [1]), timed(9.0, 10.0, [9100, 9200, 9400], [3])]
    first, second = timer.spans()
    tick = 10.0 / 9300
    assert first.end - first.begin == pytest.approx(200 * tick) and second.args["runs"] == 3
    assert first.begin == pytest.approx((1 - 300 * tick) / 2 + 100 * tick)
    assert second.end == pytest.approx(10 - (1 - 300 * tick) / 2)
    assert (first.kind, first.name, first.nbytes, first.thread) == (KERNEL, "k0", 32, 7)


def test_kernels_stay_inside_a_run_whose_counter_ran_ahead():
    timer = KernelTimer()
    timer._runs = [timed(0.0, 1.0, [0, 10, 20, 30], [1, 0]), timed(1.0, 1.1, [1000, 1010, 2010, 2020], [1, 1])]
    spans = timer.spans()
    assert [s.name for s in spans] == ["k0", "k0", "k1"]  # a kernel that did not run has no span
    assert all(1.0 <= s.begin <= s.end <= 1.1 + 1e-9 for s in spans[1:])


def test_no_runs_no_spans():
    assert KernelTimer().spans() == []
