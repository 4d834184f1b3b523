"""Eigenvalues and singular values that numpy computes: gradients, compiled code, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.autograd import gradcheck, gradgradcheck
from graphc.base.errors import ArgumentError, DTypeError, GradientError, ShapeError, TraceError
from graphc.linalg import LinAlgError
from graphc.linalg import decompositions as factors

RANDOM = np.random.default_rng(3)
SQUARE = RANDOM.normal(size=(2, 3, 3)) + 3 * np.eye(3)
SYMMETRIC = SQUARE @ SQUARE.swapaxes(1, 2)
TALL, WIDE = RANDOM.normal(size=(2, 4, 3)), RANDOM.normal(size=(2, 3, 4))
CASES = {
    "eigenvalues of any": (factors.EIGEN_OF_ANY, np.diag([1.0, 2.0, 4.0]) + 0.1 * SQUARE[0]),
    "singular values": (factors.SINGULAR, SQUARE),
    "singular values, tall": (factors.SINGULAR, TALL),
    "singular values, wide": (factors.SINGULAR, WIDE),
}


def leaf(array: np.ndarray) -> gc.Tensor:
    return gc.tensor(array, requires_grad=True)


@pytest.mark.parametrize(("rule", "matrix"), CASES.values(), ids=CASES)
def test_the_gradient_is_that_of_small_steps(rule, matrix):
    assert gradcheck(lambda x: factors.apply(rule, x), (leaf(matrix),))


def test_the_gradient_of_complex_eigenvectors_is_that_of_small_steps_where_phases_do_not_matter():
    def seen(x):
        values, vectors = factors.apply(factors.EIGEN_OF_ANY, x)
        return gc.view_as_real((vectors * values.unsqueeze(-2)) @ vectors.mH)

    x = leaf(np.array([[1.0, 2.0], [-1.0, 0.5]]))
    assert factors.apply(factors.EIGEN_OF_ANY, x)[0].imag.abs().min() > 1
    assert gradcheck(seen, (x,)) and gradgradcheck(seen, (x,))


@pytest.mark.parametrize("matrix", [TALL, WIDE, np.eye(3)], ids=["tall", "wide", "equal singular values"])
def test_the_gradient_of_a_pseudo_inverse_is_that_of_small_steps_also_the_second(matrix):
    def inverse(x):
        return factors.apply(factors.PSEUDO_INVERSE, x, gc.zeros(()).double(), gc.zeros(()).double())[0]

    assert gradcheck(inverse, (leaf(matrix),)) and gradgradcheck(inverse, (leaf(matrix),))


@pytest.mark.parametrize(("rule", "matrix"), CASES.values(), ids=CASES)
def test_compiled_code_has_results_and_gradients(rule, matrix):
    def energy(x):
        return sum((f.abs() ** 2 * (1.0 + i)).sum() for i, f in enumerate(factors.apply(rule, x)))

    a, b = leaf(matrix), leaf(matrix)
    wanted = energy(a)
    found = gc.compile(energy)(b)
    assert found.item() == pytest.approx(wanted.item())
    wanted.backward()
    found.backward()
    np.testing.assert_allclose(b.grad.numpy(), a.grad.numpy(), rtol=1e-8, atol=1e-9)


def test_a_gradient_that_is_asked_for_goes_through_the_call():
    x, y = leaf(SQUARE), leaf(SQUARE)
    (wanted,) = gc.autograd.grad(factors.apply(factors.SINGULAR, x)[1].sum(), [x])
    (found,) = gc.autograd.grad(gc.compile(lambda x: factors.apply(factors.SINGULAR, x)[1])(y).sum(), [y])
    np.testing.assert_allclose(found.numpy(), wanted.numpy())


def test_equal_singular_values_have_a_finite_gradient():
    x = leaf(np.eye(3))
    factors.apply(factors.SINGULAR, x)[1].sum().backward()
    assert x.grad.tolist() == np.eye(3).tolist()


def test_what_has_no_gradient_says_so():
    with pytest.raises(GradientError, match="full_matrices"):
        factors.apply(factors.SINGULAR_FULL, leaf(TALL))[0].sum().backward()


def test_matrices_without_a_result_are_refused():
    with pytest.raises(LinAlgError, match=r"linalg.svd: SVD did not converge"):
        factors.apply(factors.SINGULAR, gc.full((2, 2), float("nan")))


def test_what_is_no_matrix_of_floats_is_refused():
    with pytest.raises(DTypeError, match="i64"):
        factors.apply(factors.EIGEN_OF_ANY, gc.ones(2, 2).long())
    with pytest.raises(ShapeError, match="takes matrices"):
        factors.apply(factors.SINGULAR, gc.ones(3))
    with pytest.raises(ArgumentError):
        factors.apply(factors.SINGULAR, np.eye(2))


def test_a_graph_by_itself_cannot_call_numpy(tmp_path):
    class Values(gc.nn.Module):
        def forward(self, x):
            return factors.apply(factors.SINGULAR, x)[1]

    with pytest.raises(TraceError, match="svd by numpy, as there is no native code for it runs in Python"):
        gc.export(Values(), gc.eye(2), path=str(tmp_path / "values.gcm"))


def test_results_have_the_type_of_the_matrix():
    x = gc.tensor(SYMMETRIC, dtype=gc.float32)
    assert [f.dtype for f in factors.apply(factors.SINGULAR, x)] == [gc.float32] * 3
    assert [f.dtype for f in factors.apply(factors.EIGEN_OF_ANY, x)] == [gc.complex64] * 2
    assert [f.dtype for f in factors.apply(factors.SINGULAR, x.cfloat())] == [gc.complex64, gc.float32, gc.complex64]
