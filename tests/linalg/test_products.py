"""Powers, exponentials and chains beside numpy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import graphc as gc
from graphc import linalg
from graphc.autograd import gradcheck
from graphc.base.errors import ArgumentError, AttributeValueError, ShapeError

RANDOM = np.random.default_rng(10)
X = RANDOM.normal(size=(2, 4, 4))


@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 30.0])
def test_the_exponential_is_that_of_the_eigenvalues(scale: float):
    skew = scale * (X - X.swapaxes(1, 2))
    values, vectors = np.linalg.eig(skew)
    wanted = (vectors * np.exp(values)[:, None, :]) @ np.linalg.inv(vectors) if scale else np.eye(4) + 0 * X
    for function in (linalg.matrix_exp, gc.compile(linalg.matrix_exp)):
        np.testing.assert_allclose(function(gc.tensor(skew)).numpy(), wanted.real, atol=1e-10)


def test_the_exponential_has_a_gradient():
    assert gradcheck(linalg.matrix_exp, (gc.tensor(X[0, :2, :2], requires_grad=True),))
    assert linalg.matrix_exp(gc.zeros(0, 2, 2)).shape == (0, 2, 2)


def test_a_chain_is_multiplied_in_the_order_of_the_fewest_multiplications():
    sizes = [30, 2, 40, 3, 1, 20]
    chain = [RANDOM.normal(size=s) for s in pairwise(sizes)]
    found = linalg.multi_dot([gc.tensor(x) for x in chain])
    np.testing.assert_allclose(found.numpy(), np.linalg.multi_dot(chain))
    graph = gc.trace(lambda *x: linalg.multi_dot(x), *[gc.tensor(x) for x in chain[:3]])
    products = [n.results[0].shape for n in graph.nodes() if n.op.name == "matmul"]
    assert products == [(2, 3), (30, 3)]


def test_powers_are_products():
    np.testing.assert_allclose(linalg.matrix_power(gc.tensor(X), -3).numpy(), np.linalg.matrix_power(X, -3), rtol=1e-7)
    assert linalg.matrix_power(gc.tensor([[2, 1], [0, 1]]), 3).tolist() == [[8, 7], [0, 1]]
    assert linalg.matrix_power(gc.tensor(X), 0).tolist() == np.broadcast_to(np.eye(4), X.shape).tolist()


def test_tensors_are_inverted_and_solved_as_matrices():
    a = RANDOM.normal(size=(2, 3, 6)) + np.eye(6).reshape(2, 3, 6)
    np.testing.assert_allclose(linalg.tensorinv(gc.tensor(a)).numpy(), np.linalg.tensorinv(a))
    b = RANDOM.normal(size=(2, 3))
    np.testing.assert_allclose(linalg.tensorsolve(gc.tensor(a), gc.tensor(b)).numpy(), np.linalg.tensorsolve(a, b))


def test_products_of_vectors():
    a, b = RANDOM.normal(size=(4, 3)), RANDOM.normal(size=(1, 3))
    np.testing.assert_allclose(linalg.cross(gc.tensor(a), gc.tensor(b)).numpy(), np.cross(a, b))
    np.testing.assert_allclose(linalg.vecdot(gc.tensor(a), gc.tensor(b)).numpy(), (a * b).sum(-1))
    np.testing.assert_allclose(linalg.vander(gc.tensor(a), N=5).numpy(), a[..., None] ** np.arange(5))
    assert linalg.vander(gc.tensor([np.inf, 2.0])).tolist() == [[1, np.inf], [1, 2]]
    assert linalg.diagonal(gc.tensor(X), offset=1).shape == (2, 3)
    assert linalg.matmul(gc.tensor(a), gc.tensor(b.T)).shape == (4, 1)


def test_what_does_not_fit_is_refused():
    x = gc.eye(2)
    for call, error in (
        (lambda: linalg.multi_dot([x]), ArgumentError),
        (lambda: linalg.multi_dot([x, gc.ones(3, 2)]), ShapeError),
        (lambda: linalg.multi_dot([x, gc.ones(2), x]), ShapeError),
        (lambda: linalg.matrix_power(gc.ones(2, 3), 2), ShapeError),
        (lambda: linalg.vander(gc.ones(2), N=1), AttributeValueError),
        (lambda: linalg.tensorinv(x, 0), AttributeValueError),
        (lambda: linalg.tensorinv(gc.ones(2, 3), 1), ShapeError),
        (lambda: linalg.tensorsolve(gc.ones(2, 3), gc.ones(2)), ShapeError),
        (lambda: linalg.cross(gc.ones(3), gc.ones(1, 3)), ShapeError),
    ):
        with pytest.raises(error):
            call()


def test_the_exponential_of_f32_is_the_nearest_one():
    x = np.asarray(9 * X, "float32")
    wanted = linalg.matrix_exp(gc.tensor(x).double()).numpy()
    for function in (linalg.matrix_exp, gc.compile(linalg.matrix_exp)):
        found = function(gc.tensor(x))
        assert found.dtype is gc.float32
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-7)
