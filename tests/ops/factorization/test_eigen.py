"""Rotations: how many, and what they leave of matrices for which angles are extreme."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.ops.factorization import eigen
from tests.ops.apply import run


def test_more_rows_take_more_sweeps():
    assert [eigen.sweeps(n) for n in (1, 2, 3, 4, 8, 16)] == [3, 4, 5, 6, 9, 11]


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e15])
def test_compiled_code_takes_matrices_of_any_scale(n: int, scale: float):
    x = np.random.default_rng(n).normal(size=(n, n))
    x = scale * (x + x.T + np.diag(10.0 ** np.arange(n)))
    found = gc.compile(lambda x: eigen.eigh(x))(gc.tensor(x)).numpy()
    np.testing.assert_allclose(found[:, 0], np.linalg.eigvalsh(x), rtol=1e-9)


def test_the_largest_elements_of_vectors_are_positive():
    x = np.random.default_rng(3).normal(size=(4, 5, 5))
    found = run(eigen.eigh, x + x.swapaxes(1, 2))[..., 1:]
    largest = np.take_along_axis(found, np.abs(found).argmax(-2, keepdims=True), -2)
    assert (largest > 0).all()
