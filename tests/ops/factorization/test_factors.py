"""Factors of matrices as ops: what their references do that is not numpy's own work."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.ops.factorization import factors
from tests.ops.apply import run

RANDOM = np.random.default_rng(12)


@pytest.mark.parametrize(("m", "n"), [(5, 5), (70, 70), (40, 90), (90, 40)])
def test_panels_of_any_size_give_the_matrix_again(m: int, n: int):
    a = RANDOM.normal(size=(2, m, n))
    packed, k = run(factors.lu, a), min(m, n)
    lower, upper = np.tril(packed[..., :k], -1) + np.eye(m, k), np.triu(packed[..., :k, :n])
    order = packed[..., -1].astype(int)
    np.testing.assert_allclose(lower @ upper, np.take_along_axis(a, order[..., None], 1), atol=1e-11)
    assert np.abs(lower).max() <= 1 and (np.sort(order) == np.arange(m)).all()


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangles_of_any_size_are_solved(upper: bool, unit: bool):
    a, b = RANDOM.normal(size=(2, 70, 70)) / 9 + np.eye(70), RANDOM.normal(size=(2, 70, 3))
    found = run(lambda a, b: factors.solve_triangular(a, b, upper=upper, unit=unit), a, b)
    triangle = np.triu(a) if upper else np.tril(a)
    triangle = triangle - triangle * np.eye(70) + np.eye(70) if unit else triangle
    np.testing.assert_allclose(triangle @ found, b, atol=1e-9)


def test_matrices_without_a_factor_are_nan_beside_others():
    found = run(factors.cholesky, np.stack([np.eye(2), -np.eye(2)]))
    assert found[0].tolist() == np.eye(2).tolist() and np.isnan(found[1]).all()
    solved = run(factors.solve, np.stack([np.eye(2), np.zeros((2, 2))]), np.ones((2, 2, 1)))
    assert solved[0].tolist() == [[1], [1]] and np.isnan(solved[1]).all()


def test_an_order_is_a_matrix():
    rows = run(lambda o: factors.rows_to(o, o.dtype), np.array([2.0, 0.0, 1.0]))
    assert (rows @ np.array([5, 6, 7])).tolist() == [7, 5, 6]
