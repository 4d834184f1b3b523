"""Older forms of functions of matrices, beside those of ``graphc.linalg``."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import linalg
from graphc.base.errors import ArgumentError
from graphc.linalg import methods

X = gc.tensor(np.random.default_rng(11).normal(size=(2, 3, 3)) + 3 * np.eye(3))
B = gc.ones(2, 3, 2).double()


def close(a: gc.Tensor, b: gc.Tensor) -> bool:
    return gc.allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("upper", [False, True])
def test_a_factor_of_cholesky_solves_and_inverts(upper: bool):
    positive = X @ X.mT
    factor = methods.cholesky(positive, upper)
    assert close(methods.cholesky_solve(B, factor, upper), linalg.solve(positive, B))
    assert close(methods.cholesky_inverse(factor, upper), linalg.inv(positive))


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("upper", [False, True])
def test_triangles_are_solved(upper: bool, transpose: bool):
    triangle = X.triu() if upper else X.tril()
    found = methods.triangular_solve(B, X, upper, transpose)
    assert close(found.solution, linalg.solve(triangle.mT if transpose else triangle, B))
    assert found.cloned_coefficient is not X and close(found.cloned_coefficient, X)


def test_factors_are_unpacked():
    for a, b in zip(methods.lu_unpack(*methods.lu(X)), linalg.lu(X), strict=True):
        assert close(a, b)
    assert methods.lu_unpack(*methods.lu(X), False).L.numel() == 0 and len(methods.lu(X, get_infos=True)) == 3
    assert close(methods.lu_solve(B, *methods.lu(X)), linalg.solve(X, B))


def test_vectors_on_the_right_are_columns():
    u, s, v = methods.svd(B)
    assert close((u * s.unsqueeze(-2)) @ v.mT, B)
    assert methods.svd(B, compute_uv=False).U.tolist() == gc.zeros(2, 3, 3).tolist()
    assert methods.qr(B, False).Q.shape == (2, 3, 3) and methods.qr(B).Q.shape == (2, 3, 2)


def test_chains_of_any_length():
    assert methods.chain_matmul(X[0]) is not None and close(methods.chain_matmul(X[0], X[1]), X[0] @ X[1])
    with pytest.raises(ArgumentError, match="got none"):
        methods.chain_matmul()
