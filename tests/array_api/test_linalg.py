"""The extension for linear algebra, beside numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest

import graphc as gc
import graphc.array_api as xp
from graphc.array_api import Array, linalg
from graphc.autograd import gradcheck
from graphc.base.errors import AttributeValueError, DTypeError, ShapeError

RANDOM = np.random.default_rng(5)
SQUARE = RANDOM.normal(size=(2, 3, 3)) + 3 * np.eye(3)
SYMMETRIC = SQUARE @ SQUARE.swapaxes(1, 2)
TALL, WIDE = RANDOM.normal(size=(2, 4, 3)), RANDOM.normal(size=(2, 3, 4))


@pytest.mark.parametrize(
    ("name", "arrays", "options"),
    [
        ("cholesky", (SYMMETRIC,), {}),
        ("cholesky", (SYMMETRIC,), {"upper": True}),
        ("cross", (TALL, TALL[:, ::-1] + 1), {}),
        ("cross", (SQUARE, SQUARE[0] + 1), {"axis": -2}),
        ("det", (SQUARE,), {}),
        ("diagonal", (WIDE,), {"offset": 1}),
        ("diagonal", (TALL,), {"offset": -2}),
        ("eigvalsh", (SYMMETRIC,), {}),
        ("inv", (SQUARE,), {}),
        ("matmul", (WIDE, TALL), {}),
        *[("matrix_norm", (WIDE,), {"ord": o}) for o in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)],
        ("matrix_norm", (WIDE,), {"keepdims": True, "ord": 2}),
        ("matrix_rank", (WIDE,), {}),
        ("matrix_transpose", (WIDE,), {}),
        ("outer", (WIDE[0, 0], TALL[0, 0]), {}),
        ("pinv", (TALL,), {}),
        ("pinv", (WIDE,), {}),
        ("slogdet", (SQUARE,), {}),
        ("solve", (SQUARE, SQUARE[0]), {}),
        ("solve", (SQUARE[0], TALL[0, 0]), {}),
        ("svdvals", (WIDE,), {}),
        ("tensordot", (WIDE, WIDE), {"axes": ((0, 1), (0, 1))}),
        ("trace", (WIDE,), {"offset": -1}),
        ("vecdot", (WIDE, WIDE), {}),
        *[("vector_norm", (WIDE,), {"ord": o}) for o in (2, 1, 0, 3, math.inf, -math.inf)],
        ("vector_norm", (WIDE,), {"axis": (0, 2), "keepdims": True}),
        ("vector_norm", (np.abs(WIDE),), {"axis": 1, "ord": -1.5}),
    ],
)
def test_the_function_is_that_of_numpy(name, arrays, options):
    found = getattr(linalg, name)(*[gc.tensor(a.copy()) for a in arrays], **options)
    wanted = getattr(np.linalg, name)(*arrays, **options)
    for f, w in zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]:
        assert type(f) is Array
        np.testing.assert_allclose(np.asarray(f), w, rtol=1e-9, atol=1e-12)


def test_factors_give_the_matrix_again():
    values, vectors = linalg.eigh(gc.tensor(SYMMETRIC))
    np.testing.assert_allclose(np.asarray((vectors * values[:, None]) @ vectors.mT), SYMMETRIC)
    for matrix in (TALL, WIDE, SQUARE):
        for mode in ("reduced", "complete"):
            q, r = linalg.qr(gc.tensor(matrix), mode=mode)
            np.testing.assert_allclose(np.asarray(q @ r), matrix)
        for full in (False, True):
            u, s, vh = linalg.svd(gc.tensor(matrix), full_matrices=full)
            least = s.shape[-1]
            np.testing.assert_allclose(np.asarray((u[..., :least] * s[:, None]) @ vh[:, :least]), matrix)
            assert u.shape[-1] == (matrix.shape[-2] if full else least)


def test_results_have_the_names_of_the_standard():
    x = gc.tensor(SYMMETRIC)
    assert linalg.eigh(x)._fields == ("eigenvalues", "eigenvectors") and linalg.qr(x)._fields == ("Q", "R")
    assert linalg.svd(x)._fields == ("U", "S", "Vh") and linalg.slogdet(x)._fields == ("sign", "logabsdet")


@pytest.mark.parametrize("n", [-2, -1, 0, 1, 2, 5])
def test_powers_of_matrices(n):
    np.testing.assert_allclose(
        np.asarray(linalg.matrix_power(gc.tensor(SQUARE), n)), np.linalg.matrix_power(SQUARE, n), rtol=1e-9
    )
    assert linalg.matrix_power(xp.asarray([[2, 1], [0, 1]]), 3).tolist() == [[8, 7], [0, 1]]


def test_the_rank_is_counted_up_to_a_tolerance():
    x = gc.tensor(np.diag([4.0, 1.0, 0.0]))
    assert linalg.matrix_rank(x).item() == 2 and linalg.matrix_rank(x, rtol=0.5).item() == 1
    assert linalg.matrix_rank(gc.stack([x, x]), rtol=xp.asarray([0.5, 0.1], dtype=xp.float64)).tolist() == [1, 2]
    assert linalg.pinv(x, rtol=0.5).tolist() == np.diag([0.25, 0.0, 0.0]).tolist()


def test_sums_of_diagonals_have_a_type():
    x = xp.asarray([[1, 2], [3, 4]], dtype=xp.int8)
    assert linalg.trace(x).dtype is gc.int64 and linalg.trace(x, dtype=xp.float32).dtype is gc.float32
    assert linalg.trace(xp.astype(x, xp.uint8)).dtype is gc.uint64


@pytest.mark.parametrize(
    "function",
    [
        lambda x: linalg.pinv(x),
        lambda x: linalg.matrix_norm(x, ord="nuc"),
        lambda x: linalg.matrix_norm(x, ord=2),
        lambda x: linalg.matrix_power(x, -2),
        lambda x: linalg.solve(x, x[0, :, 0]),
        lambda x: linalg.cross(x, x.mT),
        lambda x: linalg.vector_norm(x, axis=1, ord=3),
        lambda x: linalg.svd(x)[1],
    ],
)
def test_gradients_are_those_of_small_steps(function):
    assert gradcheck(function, (gc.tensor(SQUARE, requires_grad=True),))


def test_a_function_of_matrices_is_compiled():
    def fitted(x, y):
        names = x.__array_namespace__()
        return names.linalg.solve(x.mT @ x, x.mT @ y)

    x, y = gc.tensor(TALL[0], requires_grad=True), gc.tensor(WIDE[0, 0])
    found = gc.compile(fitted)(x, y)
    np.testing.assert_allclose(found.detach().numpy(), np.linalg.lstsq(TALL[0], WIDE[0, 0])[0], rtol=1e-9)
    found.sum().backward()
    wanted = gc.tensor(TALL[0], requires_grad=True)
    fitted(wanted, y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), wanted.grad.numpy(), rtol=1e-8)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match="size 3"):
        linalg.cross(gc.ones(2), gc.ones(2))
    with pytest.raises(AttributeValueError, match="unknown ord 'half'"):
        linalg.matrix_norm(gc.ones(2, 2), ord="half")
    with pytest.raises(AttributeValueError, match="mode"):
        linalg.qr(gc.ones(2, 2), mode="raw")
    with pytest.raises(DTypeError, match="vector_norm"):
        linalg.vector_norm(gc.ones(2).long())
    with pytest.raises(ShapeError, match="solve takes square"):
        linalg.solve(gc.ones(2, 3), gc.ones(2))
    with pytest.raises(ShapeError, match="trace takes matrices"):
        linalg.trace(gc.ones(2))


def test_eigenvalues_of_any_matrix_are_complex():
    values, vectors = linalg.eig(gc.tensor(SQUARE))
    assert type(values) is type(vectors) is Array and values.dtype is vectors.dtype is gc.complex128
    np.testing.assert_allclose(SQUARE @ np.asarray(vectors), np.asarray(vectors * values[:, None]))
    assert linalg.eigvals(gc.tensor(SQUARE)).tolist() == values.tolist()
    assert linalg.eig(gc.tensor(SQUARE))._fields == ("eigenvalues", "eigenvectors")


def test_factors_of_complex_matrices_give_them_again():
    x = SQUARE + 1j * SQUARE[::-1]
    u, s, vh = linalg.svd(gc.tensor(x))
    np.testing.assert_allclose(np.asarray((u * s[:, None]) @ vh), x)
    np.testing.assert_allclose(np.asarray(linalg.pinv(gc.tensor(x))), np.linalg.pinv(x))
    np.testing.assert_allclose(np.asarray(linalg.det(gc.tensor(x))), np.linalg.det(x))
    assert linalg.matrix_rank(gc.tensor(x)).tolist() == [3, 3]


def test_every_name_is_an_attribute():
    assert all(hasattr(linalg, name) for name in linalg.__all__)
