"""Times from stamps, and what the machine does at best."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.compiler.profile import measure_machine
from graphc.runtime.profile import COPY_BYTES, _figures, copy_bandwidth


def test_figures_without_the_cost_of_a_stamp():
    stamps = np.array([[0, 10, 110, 320], [1000, 1010, 1110, 1320], [5000, 5010, 5110, 5620]], np.int64)
    times = _figures(stamps, 0.5, 0.5)
    assert times.calls == (45.0, 100.0) and times.total == 155.0 and times.rounds == 3
    assert _figures(stamps, 0.5, 0.0).calls == (45.0, 100.0)


def test_what_is_shorter_than_a_stamp_takes_one_count():
    times = _figures(np.array([[0, 30, 50]], np.int64), 0.25, 0.5)
    assert times.calls == (0.25,) and times.least == 7.5


def test_bandwidth_is_that_of_memory():
    assert COPY_BYTES > 1 << 26
    assert 1e8 < copy_bandwidth(1 << 24) < 1e13
    assert copy_bandwidth(1 << 24) == copy_bandwidth(1 << 24)


def test_the_machine_is_measured_once():
    machine = measure_machine()
    assert machine is measure_machine() and machine.flops == pytest.approx(machine.flops)
    assert 1e8 < machine.flops < 1e13
