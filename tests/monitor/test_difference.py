"""Differences of arrays: tolerances by element type, NaN, shapes, bits."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.monitor.difference import difference, largest

ONE = np.ones(3, np.float32)


@pytest.mark.parametrize(
    ("a", "b", "within", "equal"),
    [
        (ONE, ONE, True, True),
        (ONE, ONE * np.float32(1 + 1e-6), True, False),
        (ONE, ONE * np.float32(1.01), False, False),
        (ONE.astype(np.float64), ONE.astype(np.float64) * (1 + 1e-8), False, False),
        (ONE.astype(np.float64), ONE, True, False),
        (np.array([np.nan]), np.array([np.nan]), True, True),
        (np.array([np.inf, 1.0]), np.array([np.nan, 1.0]), False, False),
        (np.array([0.0]), np.array([-0.0]), True, False),
        (np.array([1, 2]), np.array([1, 3]), False, False),
        (np.array([True]), np.array([True]), True, True),
        (np.zeros(2), np.zeros(3), False, False),
        (np.zeros(0), np.zeros(0), True, True),
    ],
)
def test_what_is_within_and_what_is_equal(a, b, within, equal):
    found = difference("x", "", a, b, None)
    assert (found.is_within, found.is_equal) == (within, equal)
    assert ("differs" in str(found)) == (not within)


def test_tolerance_and_scale():
    a, b = np.array([1e-9, 0.0]), np.array([2e-9, 0.0])
    assert not difference("x", "", a, b, None).is_within
    assert difference("x", "", a, b, 1.0).is_within and difference("x", "", a, b, 1e-6, scale=1.0).is_within
    assert difference("x", "", np.zeros(1), a[:1], None).relative == float("inf")
    assert largest(np.array([-3.0, np.inf])) == 3.0 and largest(np.zeros(0)) == 0.0
