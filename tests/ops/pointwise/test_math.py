"""Facts about mathematical functions: powers at their corners, rounding of halves, accuracy near zero."""

from __future__ import annotations

import math

import numpy as np
import pytest

import graphc
from graphc.ops.pointwise import math as m
from tests.ops.apply import gradients, run, traced

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8"])
def test_integer_powers_with_negative_exponents(dtype):
    x, y = np.array([2, 1, -1, 0, 3, 1, -1], dtype), np.array([-1, -1, -1, -1, -2, -3, -2], dtype)
    np.testing.assert_array_equal(run(m.pow, x, y), [0, 1, -1, 0, 0, 1, 1])


def test_integer_powers_wrap_around():
    assert run(m.pow, np.array([3], "uint8"), np.array([200], "uint8"))[0] == pow(3, 200, 256)
    assert int(run(m.pow, np.array([7]), np.array([60]))[0]) % 2**64 == pow(7, 60, 2**64)


def test_gradient_of_pow_at_zero():
    base, exponent = gradients(m.pow, np.array([0.0, 0.0, 0.0, 2.0]), np.array([2.0, 1.0, 0.0, 0.0]))
    np.testing.assert_array_equal(base, [0, 1, 0, 0])
    np.testing.assert_array_equal(exponent, [0, 0, 0, math.log(2)])


def test_second_derivative_of_a_square_at_zero():
    def slope(x):
        return m.mul(m.pow(x, 2.0), 1.0)

    def twice(x):
        return m.mul(m.mul(x, 2.0), 1.0)

    np.testing.assert_array_equal(gradients(slope, np.array([0.0, 3.0]))[0], run(twice, np.array([0.0, 3.0])))


def test_gradients_of_pow_are_torch(torch):
    x = np.array([0.5, 2.0, -1.5, 0.0, 0.0, -2.0])
    for exponent in (2.0, 3.0, -1.0, 0.0, 1.0):
        t = torch.tensor(x, requires_grad=True)
        (t**exponent).sum().backward()
        np.testing.assert_allclose(gradients(lambda v, n=exponent: m.pow(v, n), x)[0], t.grad.numpy())


def test_halves_round_to_even():
    np.testing.assert_array_equal(run(m.round, np.array([0.5, 1.5, 2.5, -0.5, -1.5])), [0, 2, 2, 0, -2])
    np.testing.assert_array_equal(run(m.trunc, np.array([1.7, -1.7])), [1, -1])


def test_rounding_keeps_integers():
    x = np.array([2**62 + 1, -3])
    for function in (m.floor, m.ceil, m.round, m.trunc):
        result = run(function, x)
        assert result.dtype == np.int64
        np.testing.assert_array_equal(result, x)


def test_rounding_has_gradient_zero():
    np.testing.assert_array_equal(gradients(m.floor, np.array([1.5, -2.5]))[0], [0, 0])


def test_integers_become_f32():
    graph, (result,) = traced(m.exp, np.array([1, 2]))
    assert result.dtype.name == "f32" and [n.op.name for n in graph.nodes()] == ["cast", "exp"]
    np.testing.assert_array_equal(run(m.isnan, np.array([1, 2])), [False, False])


def test_small_arguments_keep_their_digits():
    assert run(m.expm1, np.array([1e-12]))[0] == pytest.approx(1e-12, rel=1e-11)
    assert run(m.log1p, np.array([1e-12]))[0] == pytest.approx(1e-12, rel=1e-11)


def test_erf_is_the_error_function():
    x = np.linspace(-4, 4, 33)
    np.testing.assert_allclose(run(m.erf, x), [math.erf(v) for v in x], rtol=1e-15)
    assert run(m.erf, x.astype("float32")).dtype == np.float32


def test_nan_and_infinity():
    x = np.array([NAN, INF, -INF, 0.0, 3.4e38], "float32")
    np.testing.assert_array_equal(run(m.isnan, x), [1, 0, 0, 0, 0])
    np.testing.assert_array_equal(run(m.isfinite, x), [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(run(m.log, np.array([0.0, -1.0])), [-INF, NAN])
    np.testing.assert_array_equal(run(m.rsqrt, np.array([0.0, INF])), [INF, 0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sigmoid_keeps_its_digits_where_it_is_small(dtype: type):
    x = np.linspace(-85, 20, 1001).astype(dtype)
    exact = 1 / (1 + np.exp(-x.astype(np.longdouble)))
    compiled = graphc.compile(graphc.sigmoid)(graphc.tensor(x)).numpy()
    for got in (graphc.sigmoid(graphc.tensor(x)).numpy(), compiled):
        assert float(np.max(np.abs(got - exact) / np.spacing(exact.astype(dtype)))) < 3


def test_gradient_of_sigmoid_far_out():
    x = graphc.tensor([-200.0, -90.0, 0.0, 90.0, 200.0], requires_grad=True)
    graphc.sigmoid(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [0, 0, 0.25, 0, 0], atol=1e-38)
