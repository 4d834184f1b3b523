"""Patterns in numbers that depend on positions only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.streams.positions import numbers, pattern_of
from tests.streams.test_plan import plan_of


def pattern(function: Any, still: bool = False) -> Any:
    plan = plan_of(lambda x: function(gc.arange(x.shape[0]), x.shape[0]), 64, axis=0)
    return pattern_of(plan, plan.graph.outputs[0], 0, still)


def test_numbers_of_any_length():
    plan = plan_of(lambda x: gc.arange(x.shape[0]) * 2, 16, axis=0)
    assert np.array_equal(numbers(plan, plan.graph.outputs[0], 5), [0, 2, 4, 6, 8])


def test_rows_that_grow():
    found = pattern(lambda t, n: t // 3 * 2)
    assert (found.period, found.shift, found.tail, len(found.start)) == (3, 2, 0, 0)
    assert [int(found.at(t)) for t in (-3, -1, 0, 4, 300)] == [-2, -2, 0, 2, 200]


def test_rows_of_both_ends():
    found = pattern(lambda t, n: gc.minimum((t - 3).abs(), n - 2 + 0 * t))
    assert (found.period, found.shift, found.tail) == (1, 1, 0)
    assert [int(found.at(t)) for t in range(6)] == [3, 2, 1, 0, 1, 2]
    assert pattern(lambda t, n: gc.minimum(t, n - 4 + 0 * t)).tail == 3


def test_rows_that_repeat():
    found = pattern(lambda t, n: t % 5, still=True)
    assert (found.period, found.shift) == (5, 0)
    assert [int(found.at(t)) for t in (0, 7, 49)] == [0, 2, 4]


@pytest.mark.parametrize(
    "function",
    [
        lambda t, n: n - 1 - t,
        lambda t, n: t + n // 2,
        lambda t, n: t * t,
        lambda t, n: t.clamp(max=20),
        lambda t, n: t % 5,
    ],
)
def test_rows_without_a_pattern(function: Any):
    assert pattern(function) is None
