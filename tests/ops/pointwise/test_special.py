"""Special functions in native code against mpmath, and their identities."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import graphc
from graphc.errors import ArgumentError, AttributeValueError
from graphc.ops.pointwise.special import _cotangent

RNG = np.random.default_rng(12)


def native(function, x: np.ndarray) -> np.ndarray:
    return graphc.compile(function)(graphc.from_numpy(x)).numpy()


def exact(function, x: np.ndarray) -> np.ndarray:
    with mpmath.workdps(40):
        return np.array([float(function(mpmath.mpf(v))) for v in x.tolist()])


ABOVE = np.concatenate([RNG.uniform(0.01, 3, 300), RNG.uniform(3, 40, 100), 10.0 ** RNG.uniform(-8, 8, 100)])
BELOW = -RNG.uniform(0.02, 12, 300)
CASES = {
    "erfinv": (lambda x: x.erfinv(), mpmath.erfinv, RNG.uniform(-0.999, 0.999, 300)),
    "lgamma": (lambda x: x.lgamma(), lambda v: mpmath.log(abs(mpmath.gamma(v))), np.concatenate([ABOVE[:400], BELOW])),
    "digamma": (lambda x: x.digamma(), mpmath.digamma, np.concatenate([ABOVE, BELOW])),
    "trigamma": (lambda x: x.polygamma(1), lambda v: mpmath.polygamma(1, v), np.concatenate([ABOVE, BELOW])),
    "polygamma": (lambda x: x.polygamma(3), lambda v: mpmath.polygamma(3, v), np.concatenate([ABOVE[:400], BELOW])),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_native_code_is_near_the_exact_value(name: str, dtype: type):
    function, reference, x = CASES[name]
    x = x.astype(dtype).astype(np.float64)
    got, want = native(function, x.astype(dtype)), exact(reference, x)
    assert got.dtype == dtype
    # Near a zero of the function the error is one of its size around it.
    tolerance = 1e-12 if dtype is np.float64 else 3e-7
    np.testing.assert_allclose(got, want, tolerance, tolerance * 10)


def test_erfinv_to_the_ends():
    x = np.array([1.0, -1.0, 1.0001, np.nan, 0.0, -0.0, 1e-300, np.nextafter(1, 0)])
    got = native(lambda x: x.erfinv(), x)
    np.testing.assert_array_equal(got[:5], [np.inf, -np.inf, np.nan, np.nan, 0])
    np.testing.assert_allclose(got[6], 1e-300 * np.sqrt(np.pi) / 2, 1e-14)
    assert 5.5 < got[7] < 6.1


def test_gamma_functions_at_poles_and_infinities():
    x = np.array([0.0, -0.0, -3.0, np.inf, np.nan])
    np.testing.assert_array_equal(native(lambda x: x.lgamma(), x), [np.inf, np.inf, np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(native(lambda x: x.digamma(), x), [-np.inf, np.inf, np.nan, np.inf, np.nan])
    np.testing.assert_array_equal(native(lambda x: x.polygamma(1), x)[:3], [np.inf, np.inf, np.inf])


def test_the_multivariate_gamma_function():
    x = graphc.tensor([2.5, 4.0], dtype=graphc.float64)
    expected = exact(lambda v: mpmath.log(mpmath.pi ** mpmath.mpf("1.5")), np.zeros(2))
    for k in range(3):
        expected = expected + exact(mpmath.loggamma, x.numpy() - 0.5 * k)
    np.testing.assert_allclose(x.mvlgamma(3).numpy(), expected, 1e-12)
    with pytest.raises(ArgumentError, match="mvlgamma: p must be positive, got 0"):
        x.mvlgamma(0)
    with pytest.raises(AttributeValueError, match="order is -1"):
        x.polygamma(-1)


def test_derivatives_of_the_cotangent():
    assert _cotangent(0) == [1, 0] and _cotangent(1) == [-1, 0, -1] and _cotangent(2) == [2, 0, 2, 0]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_beside_poles_no_digit_is_lost(compiled: bool):
    x = np.array([-1e-20, -1e-300, 1e-20, -3 + 1e-14, -2 - 1e-14, -1e-9, -40.0 - 2.0**-40])
    for function, reference in (
        (lambda t: t.digamma(), mpmath.digamma),
        (lambda t: t.lgamma(), lambda v: mpmath.log(abs(mpmath.gamma(v)))),
    ):
        function = graphc.compile(function) if compiled else function
        np.testing.assert_allclose(function(graphc.from_numpy(x)).numpy(), exact(reference, x), 2e-15)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_higher_derivatives_are_infinite_at_poles(dtype: type, compiled: bool):
    x = graphc.from_numpy(np.array([-0.0, 0.0, -1.0, -7.0], dtype))
    for order, infinity in ((1, np.inf), (2, -np.inf), (3, np.inf), (4, -np.inf)):

        def derivative(t, order=order):
            return t.polygamma(order)

        result = (graphc.compile(derivative) if compiled else derivative)(x)
        np.testing.assert_array_equal(result.numpy(), np.full(4, infinity))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_gamma_of_one_and_two_is_zero(dtype: type):
    assert native(lambda t: t.lgamma(), np.array([1.0, 2.0], dtype)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_the_inverse_error_function_keeps_its_digits_to_the_ends(compiled: bool):
    x = np.array([1 - 2.0**-53, -1 + 2.0**-50, 0.999999, 0.75, 0.5, -0.49, 1e-8])
    function = graphc.compile(lambda t: t.erfinv()) if compiled else (lambda t: t.erfinv())
    np.testing.assert_allclose(function(graphc.from_numpy(x)).numpy(), exact(mpmath.erfinv, x), 1e-14)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_log_gamma_of_large_numbers_is_infinite(compiled: bool):
    function = graphc.compile(lambda t: t.lgamma()) if compiled else (lambda t: t.lgamma())
    result = function(graphc.from_numpy(np.array([1.7e308, 1e306, 1e305]))).numpy()
    np.testing.assert_allclose(result, [np.inf, np.inf, float(mpmath.loggamma(mpmath.mpf(1e305)))], 1e-14)
