"""Products of reflections, and factors in their form, beside PyTorch and beside ``qr``."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import linalg
from graphc.autograd import gradcheck
from graphc.base.errors import ShapeError
from graphc.linalg import reflections

RANDOM = np.random.default_rng(12)
X = RANDOM.normal(size=(2, 5, 3))
Z = X + 1j * RANDOM.normal(size=X.shape)
SOME_ZEROS = X * np.array([[1, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]])
MATRICES = [X, Z, X.swapaxes(1, 2), Z.swapaxes(1, 2), SOME_ZEROS, np.diag([1.0 + 2j, 3.0]), np.eye(3), X[..., :0]]


@pytest.mark.parametrize("x", MATRICES)
def test_factors_are_those_of_lapack(torch, x: np.ndarray):
    expected = torch.geqrf(torch.tensor(x))
    for function in (reflections.geqrf, gc.compile(reflections.geqrf)):
        for result, right in zip(function(gc.tensor(x)), expected, strict=True):
            np.testing.assert_allclose(result.numpy(), right.numpy(), atol=1e-13, strict=True)


@pytest.mark.parametrize("x", [X, Z])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_whole_products_are_applied(torch, x: np.ndarray, left: bool, transpose: bool):
    other = RANDOM.normal(size=(2, 5, 4) if left else (2, 4, 5)).astype(x.dtype)
    given = [*torch.geqrf(torch.tensor(x)), torch.tensor(other)]
    mine = [gc.tensor(np.array(t.numpy(), order="C"), requires_grad=True) for t in given]
    theirs = [t.requires_grad_() for t in given]
    result = gc.compile(reflections.ormqr)(*mine, left, transpose)
    expected = torch.ormqr(*theirs, left, transpose)
    np.testing.assert_allclose(result.detach().numpy(), expected.detach().resolve_conj().numpy(), atol=1e-13)
    weights = RANDOM.normal(size=result.shape).astype(x.dtype)
    grads = gc.autograd.grad(result, mine, gc.tensor(weights))
    for a, b in zip(grads, torch.autograd.grad(expected, theirs, torch.tensor(weights)), strict=True):
        np.testing.assert_allclose(a.numpy(), b.resolve_conj().numpy(), atol=1e-12)


@pytest.mark.parametrize("x", [X, Z])
def test_factors_make_the_matrix(x: np.ndarray):
    a = gc.tensor(x)
    factors, tau = a.geqrf()
    q, r = linalg.qr(a)
    assert gc.allclose(factors.orgqr(tau), q) and gc.allclose(factors[:, :3].triu(), r)
    whole = factors.ormqr(tau, gc.eye(5).to(a.dtype).expand(2, 5, 5))
    assert gc.allclose(whole[..., :3], q) and gc.allclose(whole @ whole.mH, gc.eye(5).to(a.dtype).expand(2, 5, 5))


def test_reflections_are_orthogonal():
    vectors = np.tril(X, -1)
    tau = 2 / (1 + (vectors * vectors).sum(-2))
    q = linalg.householder_product(gc.tensor(vectors), gc.tensor(tau))
    np.testing.assert_allclose((q.mT @ q).numpy(), np.broadcast_to(np.eye(3), (2, 3, 3)), atol=1e-12)


def test_factors_have_gradients():
    assert gradcheck(reflections.geqrf, (gc.tensor(X[0], requires_grad=True),))


def test_sizes_that_do_not_fit_are_refused():
    for call in (
        lambda: linalg.householder_product(gc.ones(2, 3), gc.ones(2)),
        lambda: linalg.householder_product(gc.ones(2, 3), gc.ones(3)),
        lambda: reflections.ormqr(gc.ones(4, 2), gc.ones(3), gc.ones(4, 4)),
        lambda: reflections.ormqr(gc.ones(4, 2), gc.ones(2), gc.ones(3, 4)),
        lambda: reflections.ormqr(gc.ones(4, 2), gc.ones(2), gc.ones(3), left=False),
        lambda: reflections.geqrf(gc.ones(3)),
    ):
        with pytest.raises(ShapeError):
            call()
