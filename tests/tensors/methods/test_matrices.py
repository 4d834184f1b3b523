"""Methods of matrices are functions of the package, and do what ``graphc.linalg`` does."""

from __future__ import annotations

import pytest

import graphc as gc
from graphc import linalg

X = gc.tensor([[3.0, 1.0], [0.5, 2.0]])
SAME = {"det": linalg.det, "inverse": linalg.inv, "matrix_exp": linalg.matrix_exp, "pinverse": linalg.pinv}


@pytest.mark.parametrize("name", SAME)
def test_the_method_is_the_function(name: str):
    assert getattr(X, name)().tolist() == getattr(gc, name)(X).tolist()
    assert gc.allclose(getattr(X, name)(), SAME[name](X))


def test_methods_take_what_the_functions_take():
    assert X.matrix_power(2).tolist() == (X @ X).tolist() and X.logdet().item() == pytest.approx(1.70474809)
    assert X.slogdet()[0].item() == 1 and X.qr()[1].shape == X.svd()[1].shape * 2
    positive = X @ X.mT
    assert gc.allclose(X.cholesky_solve(positive.cholesky()), linalg.solve(positive, X), atol=1e-5)
    assert gc.allclose(positive.cholesky(True).cholesky_inverse(True), positive.inverse(), atol=1e-5)
    assert gc.allclose(X.lu_solve(*X.lu()), gc.eye(2), atol=1e-6)
    assert gc.allclose(X.triangular_solve(X.triu())[0].triu(1), gc.zeros(2, 2), atol=1e-6)
    assert X.orgqr(gc.zeros(2)).tolist() == gc.eye(2).tolist()
