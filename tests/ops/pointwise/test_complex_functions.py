"""Functions of complex numbers against PyTorch, eagerly and compiled, with gradients, and near branch cuts."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from tests.tensors.against_torch import agree, numbers

X, Y = numbers(3, 4), numbers(3, 4, seed=1)
POWERS = ["exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "exp2", "log2", "log10", "sigmoid", "reciprocal", "square"]
ANGLES = ["sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh"]


def of_one(name):
    return lambda library, x: getattr(library, name)(x)


@pytest.mark.torch
@pytest.mark.parametrize("names", [POWERS, ANGLES], ids=["powers", "angles"])
def test_functions_and_gradients_are_those_of_torch(names):
    agree({name: of_one(name) for name in names}, X)


@pytest.mark.torch
def test_powers_are_those_of_torch():
    agree(
        {
            "tensor": lambda library, x, y: x**y,
            "real exponent": lambda library, x, y: x**y.real,
            "whole": lambda library, x, y: x**3 + x**2,
            "root": lambda library, x, y: x**0.5,
            "number": lambda library, x, y: 2.0**x + x ** (1 - 2j),
        },
        X,
        Y,
    )


@pytest.mark.parametrize("name", ["sqrt", "log", "asin", "acos", "atan", "asinh", "acosh", "atanh", "tanh", "log1p"])
def test_compiled_functions_at_cuts_and_of_large_and_small_numbers(torch, name):
    axis = np.array([-3.0, -1.5, -0.5, -1e-9, 1e-9, 0.5, 1.5, 3.0, 30.0])
    points = np.concatenate([axis + 1e-7j, axis - 1e-7j, axis * 1j + 1e-7, axis * 1j - 1e-7, axis * (1 + 1j)])
    found = graphc.compile(lambda x: getattr(graphc, name)(x))(graphc.tensor(points)).numpy()
    np.testing.assert_allclose(found, getattr(torch, name)(torch.tensor(points)).numpy(), rtol=1e-8, atol=1e-11)


def test_the_hyperbolic_tangent_of_large_numbers_keeps_its_small_part():
    points = np.array([50 + 1j, -50 - 2j, 300 + 2j, 800 + 1j, -800 + 1j, np.inf + 1j])
    found = graphc.compile(lambda x: x.tanh())(graphc.tensor(points)).numpy()
    np.testing.assert_allclose(found.real, np.tanh(points).real, rtol=1e-12)
    np.testing.assert_allclose(found.imag, np.tanh(points).imag, rtol=1e-12)


def test_a_zero_has_powers():
    zero = graphc.tensor([0j, 0j, 0j])
    power = graphc.compile(lambda x: x ** graphc.tensor([2 + 0j, 0j, 0.5 + 1j]))
    np.testing.assert_array_equal(power(zero).numpy(), [0, 1, 0])


def test_quotients_of_large_and_small_numbers_do_not_overflow():
    x, y = graphc.tensor([3e30 + 1e30j, 2e-30 + 1e-30j]), graphc.tensor([2e30 - 1e30j, 1e-30 + 1e-30j])
    found = graphc.compile(lambda x, y: x / y)(x, y).numpy()
    np.testing.assert_allclose(found, x.numpy().astype(complex) / y.numpy().astype(complex), rtol=1e-6)


def test_what_has_no_order_is_refused():
    x = graphc.tensor(X)
    for function in (graphc.max, graphc.sort, graphc.floor, lambda x: x < x, graphc.erf, lambda x: x.clamp(0, 1)):
        with pytest.raises(graphc.errors.GraphcError, match="complex"):
            function(x)
