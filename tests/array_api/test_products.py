"""Products of matrices and vectors, beside those of numpy."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.array_api as xp
from graphc.array_api import Array
from graphc.base.errors import ArgumentError, ShapeError

A = np.arange(12.0, dtype=np.float32).reshape(3, 4)
B = np.arange(8.0).reshape(4, 2)


def test_products_promote_and_are_those_of_numpy():
    found = xp.matmul(gc.tensor(A), gc.tensor(B))
    assert type(found) is Array and found.dtype is gc.float64
    np.testing.assert_allclose(np.asarray(found), A @ B)
    assert (xp.asarray(A) @ xp.asarray(B[:, 0])).tolist() == (A @ B[:, 0]).tolist()
    assert xp.matmul(xp.asarray([[1, 2]]), xp.asarray([[3], [4]])).tolist() == [[11]]


def test_the_last_axes_are_exchanged():
    assert xp.matrix_transpose(xp.ones((2, 3, 4))).shape == (2, 4, 3)
    with pytest.raises(ShapeError):
        xp.matrix_transpose(xp.ones(3))


@pytest.mark.parametrize("axes", [1, ([1], [0]), ((-1,), (0,)), 0])
def test_sums_over_pairs_of_axes(axes):
    found = xp.tensordot(gc.tensor(A), gc.tensor(B), axes=axes)
    np.testing.assert_allclose(np.asarray(found), np.tensordot(A, B, axes=axes))


def test_sums_along_an_axis_of_both():
    x, y = np.ones((2, 3), np.int8), np.full((4, 1, 3), 2, np.int8)
    found = xp.vecdot(gc.tensor(x), gc.tensor(y))
    assert found.dtype is gc.int8 and found.tolist() == np.vecdot(x, y).tolist()
    assert xp.vecdot(gc.tensor(A), gc.tensor(A), axis=-2).tolist() == (A * A).sum(0).tolist()
    with pytest.raises(ShapeError, match="along axis -1"):
        xp.vecdot(gc.tensor(x), gc.tensor(A))
    with pytest.raises(ArgumentError):
        xp.vecdot(gc.tensor(A), A)


def test_products_are_compiled_with_their_gradients():
    def energy(x):
        return xp.sum(xp.vecdot(x @ xp.matrix_transpose(x), xp.tensordot(x, x, axes=([1], [1]))))

    a, b = (gc.tensor(A, requires_grad=True) for _ in range(2))
    energy(a).backward()
    gc.compile(energy)(b).backward()
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-5)
