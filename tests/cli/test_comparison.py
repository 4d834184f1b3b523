"""Outputs beside expected ones."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.cli.comparison import compare_arrays

A = np.array([[1.0, 2.0], [3.0, np.nan]], np.float32)


def test_the_worst_element_is_named():
    found = compare_arrays("y", A, A + np.array([[0, 0.5], [0.1, 0]], np.float32), 1e-3, 1e-3)
    assert (found.good, found.beyond, found.worst) == (False, 2, (0, 1))
    assert str(found) == ("y: 2 of 4 elements differ; the worst is y[0, 1] = 2, expected 2.5, difference 0.5")
    assert found.as_json()["worst"] == {"index": [0, 1], "value": 2.0, "expected": 2.5}


@pytest.mark.parametrize(
    ("expected", "atol", "rtol", "good"),
    [(A, 0, 0, True), (A + 0.01, 0.02, 0, True), (A * 1.01, 0, 0.02, True), (A + 0.01, 1e-3, 1e-3, False)],
)
def test_elements_may_differ_by_both_tolerances(expected: np.ndarray, atol: float, rtol: float, good: bool):
    assert compare_arrays("y", A, expected, atol, rtol).good is good


@pytest.mark.parametrize(("a", "b"), [(np.nan, 1.0), (1.0, np.nan), (np.inf, 1.0), (np.inf, -np.inf)])
def test_what_is_not_finite_differs_from_all_else(a: float, b: float):
    found = compare_arrays("y", np.array([0.0, a]), np.array([0.0, b]), 1.0, 1.0)
    assert (found.good, found.worst) == (False, (1,))


def test_shapes_and_no_elements():
    other = compare_arrays("y", A, A[:1], 1.0, 1.0)
    assert not other.good and str(other) == "y: has shape [2, 2], expected is [1, 2]"
    assert other.as_json()["shape"] == "has shape [2, 2], expected is [1, 2]"
    assert compare_arrays("y", A[:0], A[:0], 0, 0).good
    assert compare_arrays("y", np.float32(2), np.float32(2), 0, 0).worst == ()


def test_whole_numbers_that_f64_does_not_hold_are_told_apart():
    large = np.array([1, 2**53 + 1], np.int64)
    found = compare_arrays("y", large, np.array([1, 2**53], np.int64), atol=0.0, rtol=0.0)
    assert not found.good and found.beyond == 1 and found.worst == (1,)
    assert compare_arrays("y", large, large.copy(), atol=0.0, rtol=0.0).good
    assert compare_arrays("y", large, np.array([1, 2**53], np.int64), atol=1.0, rtol=0.0).good
