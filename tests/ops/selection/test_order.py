"""Facts about running sums and ranks."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.ops.selection import order
from tests.ops.apply import gradients, run


@pytest.mark.parametrize("axis", [0, 1])
def test_rank_says_where_elements_go(axis):
    x = np.random.default_rng(0).integers(0, 4, (5, 6)).astype("float64")
    found = run(lambda v: order.rank(v, axis=axis), x)
    moved = np.empty_like(x)
    np.put_along_axis(moved, found, x, axis)
    np.testing.assert_array_equal(moved, np.sort(x, axis))


def test_equal_elements_stay_in_order_both_ways():
    x = np.array([2.0, 1.0, 2.0, np.nan, 1.0, np.nan])
    np.testing.assert_array_equal(run(lambda v: order.rank(v, axis=0), x), [2, 0, 3, 4, 1, 5])
    np.testing.assert_array_equal(run(lambda v: order.rank(v, axis=0, descending=True), x), [2, 4, 3, 0, 5, 1])
    np.testing.assert_array_equal(order.order_of(x, 0, True), [3, 5, 0, 2, 1, 4])


def test_infinity_does_not_reach_sums_before_it():
    x = np.array([1.0, 2.0, np.inf])
    np.testing.assert_array_equal(run(lambda v: order.cumsum(v, axis=0), x), [1, 3, np.inf])


def test_gradient_of_a_running_sum_counts_later_sums():
    np.testing.assert_array_equal(gradients(lambda v: order.cumsum(v, axis=0), np.ones(4))[0], [4, 3, 2, 1])
    reverse = gradients(lambda v: order.cumsum(v, axis=0, reverse=True), np.ones(4))[0]
    np.testing.assert_array_equal(reverse, [1, 2, 3, 4])
