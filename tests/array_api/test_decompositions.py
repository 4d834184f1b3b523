"""Factors of matrices that numpy computes: gradients, compiled code, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.array_api import decompositions as factors
from graphc.autograd import gradcheck
from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, GradientError, ShapeError, TraceError

RANDOM = np.random.default_rng(3)
SQUARE = RANDOM.normal(size=(2, 3, 3)) + 3 * np.eye(3)
SYMMETRIC = SQUARE @ SQUARE.swapaxes(1, 2)
TALL, WIDE = RANDOM.normal(size=(2, 4, 3)), RANDOM.normal(size=(2, 3, 4))
CASES = {
    "inverse": (factors.INVERSE, SQUARE),
    "determinant": (factors.DETERMINANT, SQUARE),
    "logarithm of the determinant": (factors.LOG_DETERMINANT, SQUARE),
    "singular values": (factors.SINGULAR, SQUARE),
    "singular values, tall": (factors.SINGULAR, TALL),
    "singular values, wide": (factors.SINGULAR, WIDE),
    "triangular": (factors.TRIANGULAR, SQUARE),
    "triangular, tall": (factors.TRIANGULAR, TALL),
    "triangular, complete": (factors.TRIANGULAR_COMPLETE, SQUARE),
}


def leaf(array: np.ndarray) -> gc.Tensor:
    return gc.tensor(array, requires_grad=True)


@pytest.mark.parametrize(("rule", "matrix"), CASES.values(), ids=CASES)
def test_the_gradient_is_that_of_small_steps(rule, matrix):
    assert gradcheck(lambda x: factors.apply(rule, x), (leaf(matrix),))


@pytest.mark.parametrize("rule", [factors.CHOLESKY, factors.EIGEN], ids=lambda r: r.name)
def test_the_gradient_of_a_symmetric_matrix_is_that_of_small_steps(rule):
    assert gradcheck(lambda x: factors.apply(rule, (x + x.mT) * 0.5), (leaf(SYMMETRIC),))


@pytest.mark.parametrize("right", [SQUARE, SQUARE[0], TALL[:, :3, :2]], ids=["batch", "one", "narrow"])
def test_the_gradient_of_a_solution_is_that_of_small_steps(right):
    assert gradcheck(lambda a, b: factors.apply(factors.SOLVE, a, b), (leaf(SQUARE), leaf(right)))


def test_gradients_have_gradients():
    x = leaf(SQUARE[0])
    (first,) = gc.autograd.grad(factors.apply(factors.INVERSE, x)[0].sum(), (x,), create_graph=True)
    assert gradcheck(
        lambda x: gc.autograd.grad(factors.apply(factors.INVERSE, x)[0].sum(), (x,), create_graph=True)[0], (x,)
    )
    assert first.requires_grad


@pytest.mark.parametrize(("rule", "matrix"), CASES.values(), ids=CASES)
def test_compiled_code_has_results_and_gradients(rule, matrix):
    def energy(x):
        return sum((f * f * (1.0 + i)).sum() for i, f in enumerate(factors.apply(rule, x)))

    a, b = leaf(matrix), leaf(matrix)
    wanted = energy(a)
    found = gc.compile(energy)(b)
    assert found.item() == pytest.approx(wanted.item())
    wanted.backward()
    found.backward()
    np.testing.assert_allclose(b.grad.numpy(), a.grad.numpy(), rtol=1e-8, atol=1e-9)


def test_equal_singular_values_have_a_finite_gradient():
    x = leaf(np.eye(3))
    factors.apply(factors.SINGULAR, x)[1].sum().backward()
    assert x.grad.tolist() == np.eye(3).tolist()


def test_what_has_no_gradient_says_so():
    with pytest.raises(GradientError, match="full_matrices"):
        factors.apply(factors.SINGULAR_FULL, leaf(TALL))[0].sum().backward()
    for rule, matrix in ((factors.TRIANGULAR, WIDE), (factors.TRIANGULAR_COMPLETE, TALL)):
        with pytest.raises(GradientError, match="has no gradient"):
            factors.apply(rule, leaf(matrix))[0].sum().backward()


def test_matrices_without_a_result_are_refused():
    with pytest.raises(AttributeValueError, match="inv: Singular matrix"):
        factors.apply(factors.INVERSE, gc.zeros(2, 2))
    with pytest.raises(AttributeValueError, match=r"cholesky: .*positive definite"):
        factors.apply(factors.CHOLESKY, -gc.eye(2))


def test_what_is_no_matrix_of_floats_is_refused():
    with pytest.raises(DTypeError, match="i64"):
        factors.apply(factors.INVERSE, gc.ones(2, 2).long())
    with pytest.raises(ShapeError, match="takes matrices"):
        factors.apply(factors.SINGULAR, gc.ones(3))
    with pytest.raises(ShapeError, match="det takes square"):
        factors.need_square("det", gc.ones(2, 3))
    with pytest.raises(ArgumentError):
        factors.apply(factors.INVERSE, np.eye(2))


def test_a_graph_by_itself_cannot_call_numpy(tmp_path):
    class Inverse(gc.nn.Module):
        def forward(self, x):
            return factors.apply(factors.INVERSE, x)[0]

    with pytest.raises(TraceError, match="inv runs in Python"):
        gc.export(Inverse(), gc.eye(2), path=str(tmp_path / "inverse.gcm"))


def test_results_have_the_type_of_the_matrix():
    for rule in (factors.INVERSE, factors.LOG_DETERMINANT, factors.EIGEN, factors.SINGULAR):
        found = factors.apply(rule, gc.tensor(SYMMETRIC, dtype=gc.float32))
        assert {f.dtype for f in found} == {gc.float32}
