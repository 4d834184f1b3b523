"""Charts: round ticks, thinning that keeps peaks, histograms inside of the frame."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphc.monitor.chart import HEIGHT, MOST_POINTS, histogram_chart, thin, ticks
from graphc.monitor.writer import make_histogram


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [(0, 1, [0, 0.5, 1]), (0, 100, [0, 50, 100]), (-1, 1, [-1, -0.5, 0, 0.5, 1]), (3, 3, [3])],
)
def test_ticks(low, high, wanted):
    assert ticks(low, high) == pytest.approx(wanted)


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_ticks_lie_inside(low, width):
    high = low + width
    found = ticks(low, high)
    assert 1 <= len(found) <= 6
    assert all(low - width * 1e-6 <= t <= high + width * 1e-6 for t in found)


def test_peaks_are_kept():
    values = np.zeros(10_000)
    values[5_000], values[7_000] = 9, -9
    points = thin(range(10_000), values.tolist())
    assert len(points) <= MOST_POINTS + 2
    assert (5_000, 9.0) in points
    assert (7_000, -9.0) in points
    assert [s for s, _ in points] == sorted(s for s, _ in points)
    assert thin([1, 2], [3.0, 4.0]) == [(1, 3.0), (2, 4.0)]


def test_ticks_of_steps_are_whole_numbers():
    assert ticks(0, 3, whole=True) == [0, 1, 2, 3]
    assert ticks(0, 1, whole=True) == [0, 1]
    assert ticks(0, 1000, whole=True) == ticks(0, 1000)


def test_histograms_are_darkest_where_most_values_are():
    values = np.concatenate([np.zeros(90), np.ones(10)])
    chart = histogram_chart("<a>", [0, 1], [make_histogram(values), make_histogram(values)])
    tree = ElementTree.fromstring(chart)
    assert tree.get("aria-label") == "<a>"
    shades = [(float(r.get("y")), float(r.get("fill-opacity"))) for r in tree.iter("rect")]
    assert max(shades)[1] == 1.0
    assert min(shades)[1] < 0.2
    assert all(0 <= y <= HEIGHT for y, _ in shades)


def test_many_histograms_are_thinned():
    tables = [make_histogram(np.arange(5.0)) for _ in range(500)]
    assert histogram_chart("a", range(500), tables).count("<rect") < 60 * 40
