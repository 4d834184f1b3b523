"""Factors, eigenvalues, singular values and least squares beside numpy."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import graphc as gc
from graphc import linalg
from graphc.autograd import gradcheck, gradgradcheck
from graphc.base.errors import ArgumentError, AttributeValueError, ShapeError

RANDOM = np.random.default_rng(8)
TALL = RANDOM.normal(size=(2, 5, 3))
WIDE = TALL.swapaxes(1, 2).copy()
SYMMETRIC = WIDE @ TALL


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("matrix", [TALL, WIDE, SYMMETRIC], ids=["tall", "wide", "square"])
def test_orthogonal_factors_give_the_matrix_again(matrix: np.ndarray, compiled: bool):
    for mode in ("reduced", "complete"):
        function = partial(linalg.qr, mode=mode)
        q, r = (gc.compile(lambda x, f=function: f(x)) if compiled else function)(gc.tensor(matrix))
        wanted = np.linalg.qr(matrix, mode=mode)
        np.testing.assert_allclose(q.numpy(), wanted[0], atol=1e-12)
        np.testing.assert_allclose(r.numpy(), wanted[1], atol=1e-12)
    assert linalg.qr(gc.tensor(matrix), "r").Q.shape == (0,)


@pytest.mark.parametrize("matrix", [TALL, WIDE[:, :, :4], SYMMETRIC], ids=["tall", "wide", "square"])
def test_orthogonal_factors_have_gradients(matrix: np.ndarray):
    assert gradcheck(linalg.qr, (gc.tensor(matrix, requires_grad=True),))


def test_one_triangle_of_a_symmetric_matrix_is_read():
    lower = gc.tensor(np.tril(SYMMETRIC))
    np.testing.assert_allclose(linalg.eigvalsh(lower).numpy(), np.linalg.eigvalsh(SYMMETRIC))
    np.testing.assert_allclose(linalg.eigvalsh(lower.mT, "U").numpy(), np.linalg.eigvalsh(SYMMETRIC))


@pytest.mark.parametrize("compiled", [False, True])
def test_eigenvalues_and_vectors_of_any_matrix_are_complex(compiled: bool):
    matrix = RANDOM.normal(size=(2, 4, 4))
    for x in (matrix, SYMMETRIC, matrix + 1j * matrix.swapaxes(1, 2), matrix.astype("float32")):
        values, vectors = (gc.compile(linalg.eig) if compiled else linalg.eig)(gc.tensor(x))
        assert values.dtype is vectors.dtype and values.dtype.is_complex
        np.testing.assert_allclose(x @ vectors.numpy(), vectors.numpy() * values.numpy()[:, None], atol=1e-5)
        assert linalg.eigvals(gc.tensor(x)).tolist() == values.tolist()
    turn = gc.tensor([[0.0, -1.0], [1.0, 0.0]])
    assert sorted(linalg.eigvals(turn).tolist(), key=lambda z: z.imag) == [-1j, 1j]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 12, 13])
def test_compiled_eigenvalues_and_vectors_are_those_of_the_reference(n: int):
    x = RANDOM.normal(size=(n, n))
    for matrix in (x @ x.T, np.ones((n, n)), np.diag(np.arange(n)[::-1]) + 1e-9, np.stack([x + x.T] * 5)):
        values, vectors = gc.compile(linalg.eigh)(gc.tensor(matrix))
        np.testing.assert_allclose(values.numpy(), np.linalg.eigvalsh(matrix), rtol=1e-10, atol=1e-12)
        again = (vectors * values.unsqueeze(-2)) @ vectors.mT
        np.testing.assert_allclose(again.numpy(), matrix, atol=1e-11)
        np.testing.assert_allclose((vectors.mT @ vectors).numpy(), np.broadcast_to(np.eye(n), matrix.shape), atol=1e-12)


def test_eigenvalues_and_vectors_have_gradients_of_both_orders():
    x = gc.tensor(SYMMETRIC[0] + np.diag([0.0, 3.0, 9.0]), requires_grad=True)
    assert gradcheck(lambda x: linalg.eigh((x + x.mT) * 0.5), (x,))
    assert gradgradcheck(lambda x: linalg.eigh((x + x.mT) * 0.5), (x,))


def test_least_squares_of_full_and_less_rank():
    right = RANDOM.normal(size=(5, 2))
    wanted = np.linalg.lstsq(TALL[0], right)[0]
    for driver in (None, "gels", "gelsd", "gelss"):
        found = linalg.lstsq(gc.tensor(TALL[0]), gc.tensor(right), driver=driver)
        np.testing.assert_allclose(found.solution.numpy(), wanted, rtol=1e-9)
    less = np.outer(TALL[0, :, 0], [1.0, 2.0, 0.5])
    found = linalg.lstsq(gc.tensor(less), gc.tensor(right[:, 0]), driver="gelsd")
    np.testing.assert_allclose(found.solution.numpy(), np.linalg.lstsq(less, right[:, 0])[0], rtol=1e-9)
    assert found.rank.item() == 1 and found.residuals.numel() == 0


def test_ranks_count_what_is_larger_than_both_tolerances():
    x = gc.tensor(np.diag([4.0, 1.0, 1e-20]))
    assert linalg.matrix_rank(x).item() == 2 and linalg.matrix_rank(x, atol=2.0).item() == 1
    assert linalg.matrix_rank(x, 1e-30).item() == 3 and linalg.matrix_rank(x, rtol=0.1, hermitian=True).item() == 2
    assert linalg.matrix_rank(gc.zeros(2, 0, 3)).tolist() == [0, 0] and linalg.pinv(gc.zeros(0, 3)).shape == (3, 0)


def test_what_is_not_known_is_refused():
    x = gc.eye(2)
    for call, error in (
        (lambda: linalg.qr(x, "raw"), AttributeValueError),
        (lambda: linalg.eigh(x, "X"), AttributeValueError),
        (lambda: linalg.lstsq(x, x, driver="none"), AttributeValueError),
        (lambda: linalg.lstsq(x, gc.ones(3, 1)), ShapeError),
        (lambda: linalg.svd(x, driver="gesvd"), ArgumentError),
    ):
        with pytest.raises(error):
            call()
