"""Systems, inverses, determinants and triangular factors beside numpy, with gradients of both orders."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import linalg
from graphc.autograd import gradcheck, gradgradcheck
from graphc.base.errors import ShapeError, UnsupportedError

RANDOM = np.random.default_rng(7)
SQUARE = RANDOM.normal(size=(2, 3, 3)) + 3 * np.eye(3)
POSITIVE = SQUARE @ SQUARE.swapaxes(1, 2)
RIGHT = RANDOM.normal(size=(2, 3, 2))
SINGULAR = np.ones((2, 2))


def leaf(x: np.ndarray) -> gc.Tensor:
    return gc.tensor(x, requires_grad=True)


FUNCTIONS = {
    "cholesky": (lambda x: linalg.cholesky((x + x.mT) * 0.5), (POSITIVE,)),
    "solve": (linalg.solve, (SQUARE, RIGHT)),
    "inv": (linalg.inv, (SQUARE,)),
    "det": (linalg.det, (SQUARE,)),
    "slogdet": (lambda x: linalg.slogdet(x).logabsdet, (SQUARE,)),
    "lu": (lambda x: linalg.lu(x)[1:], (SQUARE,)),
    "lu of wide ones": (lambda x: linalg.lu(x)[1:], (RIGHT.swapaxes(1, 2),)),
    "lu of high ones": (lambda x: linalg.lu(x)[1:], (RIGHT,)),
    "solve_triangular": (lambda a, b: linalg.solve_triangular(a, b, upper=True), (SQUARE, RIGHT)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_small_steps_also_the_second(name: str):
    function, given = FUNCTIONS[name]
    assert gradcheck(function, tuple(map(leaf, given))) and gradgradcheck(function, tuple(map(leaf, given)))


@pytest.mark.parametrize("n", [2, 8, 9, 40, 100])
def test_solutions_are_those_of_numpy(n: int):
    a, b = RANDOM.normal(size=(n, n)), RANDOM.normal(size=(n, 3))
    x, y = gc.tensor(a), gc.tensor(b)
    np.testing.assert_allclose(linalg.solve(x, y).numpy(), np.linalg.solve(a, b), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(linalg.inv(x).numpy(), np.linalg.inv(a), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(linalg.slogdet(x).logabsdet.numpy(), np.linalg.slogdet(a)[1])
    p, lower, upper = linalg.lu(x)
    np.testing.assert_allclose((p @ lower @ upper).numpy(), a, atol=1e-12)
    np.testing.assert_allclose(linalg.lu_solve(*linalg.lu_factor(x), y).numpy(), np.linalg.solve(a, b), rtol=1e-8)


def test_singular_matrices_are_refused_or_numbered():
    singular = gc.tensor(SINGULAR)
    for function in (linalg.inv, gc.compile(linalg.inv)):
        with pytest.raises(linalg.LinAlgError, match="singular"):
            function(singular)
    assert linalg.inv_ex(singular).info.item() == 2 and linalg.lu_factor_ex(singular).info.item() == 2
    assert linalg.solve_ex(singular, singular).info.item() == 2
    assert linalg.cholesky_ex(-gc.eye(3)).info.item() == 1 and linalg.det(singular).item() == 0
    assert linalg.slogdet(singular).sign.item() == 0 and gc.logdet(singular).item() == -np.inf
    with pytest.raises(linalg.LinAlgError, match="not positive definite"):
        linalg.cholesky(-gc.eye(3))
    for checked in (linalg.inv_ex, linalg.lu_factor_ex, lambda x, **o: linalg.solve_ex(x, x, **o)):
        with pytest.raises(linalg.LinAlgError):
            checked(singular, check_errors=True)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("n", [3, 12, 70])
def test_the_first_minor_that_is_not_positive_is_numbered(n: int, compiled: bool):
    matrices = np.stack([np.eye(n)] * 3) + np.triu(np.full((n, n), np.nan), 1)
    matrices[0, 2, 2], matrices[2, 1, 1] = -1, 0
    function = gc.compile(linalg.cholesky_ex) if compiled else linalg.cholesky_ex
    factor, info = function(gc.tensor(matrices))
    assert info.tolist() == [3, 0, 2] and factor[1].tolist() == np.eye(n).tolist()
    assert factor[0, :2, :2].tolist() == np.eye(2).tolist() and factor[0].diagonal()[2:].isnan().all()


def test_numbers_that_are_not_finite_go_through():
    x = gc.tensor([[1.0, float("nan")], [0.0, 1.0]])
    assert linalg.solve(x, gc.ones(2)).isnan().any()


def test_batches_broadcast_and_vectors_are_told_from_matrices():
    a = gc.tensor(SQUARE)
    assert linalg.solve(a, gc.ones(2, 3).double()).shape == (2, 3)
    assert linalg.solve(a, gc.ones(3, 4).double()).shape == (2, 3, 4)
    assert linalg.solve(a[0], gc.ones(5, 3, 1).double()).shape == (5, 3, 1)
    with pytest.raises(ShapeError, match="do not fit"):
        linalg.solve(a, gc.ones(4).double())
    with pytest.raises(ShapeError, match="left=False"):
        linalg.solve(a, gc.ones(3).double(), left=False)
    with pytest.raises(ShapeError, match="left=False"):
        linalg.solve(gc.cat([a, a[:1]]), gc.eye(3).double(), left=False)
    with pytest.raises(UnsupportedError, match="without pivots"):
        linalg.lu(a, pivot=False)


def test_a_batch_is_mapped():
    found = gc.vmap(linalg.solve)(gc.tensor(SQUARE), gc.tensor(RIGHT))
    np.testing.assert_allclose(found.numpy(), np.linalg.solve(SQUARE, RIGHT))
