"""Results have the names that PyTorch gives them."""

from __future__ import annotations

import pytest

import graphc as gc

X = gc.tensor([[2.0, 1.0], [1.0, 3.0]])
NAMES = {
    "cholesky_ex": ("L", "info"),
    "eig": ("eigenvalues", "eigenvectors"),
    "eigh": ("eigenvalues", "eigenvectors"),
    "inv_ex": ("inverse", "info"),
    "lu": ("P", "L", "U"),
    "lu_factor": ("LU", "pivots"),
    "lu_factor_ex": ("LU", "pivots", "info"),
    "qr": ("Q", "R"),
    "slogdet": ("sign", "logabsdet"),
    "svd": ("U", "S", "Vh"),
}


@pytest.mark.parametrize("name", NAMES)
def test_results_are_named_tuples(name: str):
    assert getattr(gc.linalg, name)(X)._fields == NAMES[name]


def test_results_of_two_operands_are_named_tuples():
    assert gc.linalg.solve_ex(X, X)._fields == ("result", "info")
    assert gc.linalg.lstsq(X, X)._fields == ("solution", "residuals", "rank", "singular_values")
