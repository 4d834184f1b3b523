"""Norms and condition numbers beside numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest

import graphc as gc
from graphc import linalg
from graphc.base.errors import AttributeValueError, DTypeError, IndexRangeError, ShapeError

X = np.random.default_rng(9).normal(size=(2, 3, 4))
ORDERS = ("fro", "nuc", 2, -2, 1, -1, math.inf, -math.inf)


@pytest.mark.parametrize("order", ORDERS)
def test_norms_of_matrices_are_those_of_numpy(order):
    for dim in ((1, 2), (2, 0), (-1, -2)):
        found = linalg.matrix_norm(gc.tensor(X), order, dim, keepdim=True)
        np.testing.assert_allclose(found.numpy(), np.linalg.norm(X, order, dim, keepdims=True))
    assert linalg.norm(gc.tensor(X[0]), order).item() == pytest.approx(np.linalg.norm(X[0], order))


@pytest.mark.parametrize("order", [0, 0.5, 1, 2, 3.5, -1, math.inf, -math.inf])
def test_norms_of_vectors_are_those_of_numpy(order):
    np.testing.assert_allclose(linalg.norm(gc.tensor(X), order, 1).numpy(), np.linalg.norm(X, order, 1))
    flat = np.linalg.norm(X.ravel(), order)
    assert linalg.vector_norm(gc.tensor(X), order).item() == pytest.approx(flat)


@pytest.mark.parametrize("p", [None, *ORDERS])
def test_condition_numbers_are_those_of_numpy(p):
    found = linalg.cond(gc.tensor(X[:, :, :3]), p)
    np.testing.assert_allclose(found.numpy(), np.linalg.cond(X[:, :, :3], p), rtol=1e-9)


def test_a_singular_matrix_has_an_infinite_condition():
    assert linalg.cond(gc.zeros(2, 2), 1).item() == math.inf


@pytest.mark.parametrize("p", [None, 1])
def test_a_matrix_without_elements_has_the_condition_0(p):
    assert linalg.cond(gc.zeros(2, 0, 0).cfloat(), p).tolist() == [0, 0]


def test_what_has_no_norm_is_refused():
    for call, error in (
        (lambda: linalg.vector_norm(gc.ones(2).long()), DTypeError),
        (lambda: linalg.vector_norm(gc.ones(2), "fro"), AttributeValueError),
        (lambda: linalg.vector_norm(gc.ones(0), math.inf), ShapeError),
        (lambda: linalg.matrix_norm(gc.ones(2)), ShapeError),
        (lambda: linalg.matrix_norm(gc.ones(2, 2), dim=0), ShapeError),
        (lambda: linalg.matrix_norm(gc.ones(2, 2), dim=(2, 1)), IndexRangeError),
        (lambda: linalg.norm(gc.ones(2, 2, 2), dim=(0, 1, 2)), ShapeError),
        (lambda: linalg.matrix_norm(gc.ones(2, 2), dim=(1, -1)), ShapeError),
        (lambda: linalg.norm(gc.ones(2, 2, 2), 2), ShapeError),
    ):
        with pytest.raises(error):
            call()
    assert linalg.vector_norm(gc.ones(4).long(), dtype=gc.float64).item() == 2
