"""Functions of each element against numpy, at infinities, at zeros of both signs, and with gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import graphc
from graphc.autograd import gradcheck
from graphc.errors import ArgumentError

X = np.array([-2.5, -1.0, -0.25, -0.0, 0.0, 0.5, 1.0, 3.75])
Y = np.array([1.5, -2.0, 0.25, -0.0, 1.0, -0.5, 2.0, -1.25])
INSIDE = np.array([-0.9, -0.25, 0.0, 0.125, 0.75])
POSITIVE = np.array([1.0, 1.25, 2.0, 40.0])


def close(result: graphc.Tensor, expected: np.ndarray, rtol: float = 1e-12) -> None:
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result.numpy(), expected, rtol=rtol, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "values", "reference"),
    [
        ("exp2", X, np.exp2),
        ("log2", POSITIVE, np.log2),
        ("log10", POSITIVE, np.log10),
        ("tan", X, np.tan),
        ("sinh", X, np.sinh),
        ("cosh", X, np.cosh),
        ("asinh", X, np.arcsinh),
        ("acosh", POSITIVE, np.arccosh),
        ("atanh", INSIDE, np.arctanh),
        ("atan", X, np.arctan),
        ("asin", INSIDE, np.arcsin),
        ("acos", INSIDE, np.arccos),
        ("deg2rad", X, np.deg2rad),
        ("rad2deg", X, np.rad2deg),
        ("sinc", X, np.sinc),
        ("frac", X, lambda v: v - np.trunc(v)),
        ("erfc", X, np.vectorize(math.erfc)),
        ("logit", INSIDE[3:], lambda v: np.log(v / (1 - v))),
    ],
)
def test_one_operand(name: str, values: np.ndarray, reference: Callable[[np.ndarray], np.ndarray]):
    close(getattr(graphc.tensor(values), name)(), reference(values), rtol=1e-9 if name == "erfc" else 1e-12)
    smooth = values[(np.abs(values) > 0.1) & (np.abs(values) != 1)]
    assert gradcheck(lambda x: getattr(x, name)(), [graphc.tensor(smooth).requires_grad_()])


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("atan2", np.arctan2),
        ("hypot", np.hypot),
        ("copysign", np.copysign),
        ("logaddexp", np.logaddexp),
        ("logaddexp2", np.logaddexp2),
        ("heaviside", np.heaviside),
        ("fmax", np.fmax),
        ("fmin", np.fmin),
    ],
)
def test_two_operands(name: str, reference: Callable[..., np.ndarray]):
    close(getattr(graphc.tensor(X), name)(graphc.tensor(Y)), reference(X, Y))


def test_whole_numbers_become_floats():
    whole = graphc.tensor([0, 1, 2])
    for name in ("exp2", "sinh", "asinh", "sinc", "deg2rad"):
        assert getattr(whole, name)().dtype is graphc.float32


def test_asinh_of_large_numbers():
    """The square of the largest f32 overflows; its logarithm does not."""
    large = np.array([-3e38, -1e20, 1e10, 3e38], np.float32)
    close(graphc.tensor(large).asinh(), np.arcsinh(large.astype(np.float64)).astype(np.float32), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
@pytest.mark.parametrize("compiled", [False, True])
def test_remainders_of_the_smallest_and_largest_numbers(dtype: str, compiled: bool):
    ends = np.iinfo(dtype)
    x = np.array([ends.min, ends.min + 1, ends.max, ends.max - 1, 0, 1], dtype)
    for divisor in {ends.min, ends.max, 7, 1, 2, 5, -1, -7} - {0}:
        if divisor < ends.min:
            continue
        y = np.full_like(x, divisor)
        function = graphc.compile(graphc.fmod) if compiled else graphc.fmod
        result = function(graphc.from_numpy(x.copy()), graphc.from_numpy(y)).numpy()
        assert result.tolist() == [_rest(a, divisor) for a in x.tolist()]


def _rest(a: int, b: int) -> int:
    return (abs(a) % abs(b)) * (-1 if a < 0 else 1)


def test_remainders():
    whole = graphc.tensor([-7, -1, 5])
    assert whole.fmod(3).tolist() == [-1, -1, 2]
    divisors = np.where(Y == 0, 1.0, Y)
    close(graphc.tensor(X).fmod(graphc.tensor(divisors)), np.fmod(X, divisors))


def test_signs_of_zeros():
    assert graphc.tensor(X).signbit().tolist() == np.signbit(X).tolist()
    assert graphc.tensor([-1, 0, 1]).signbit().tolist() == [True, False, False]
    assert np.signbit(graphc.tensor([1.0, -2.0]).copysign(-0.0).numpy()).all()
    assert graphc.tensor([1.0, -2.0]).copysign(3.0).tolist() == [1, 2]


def test_infinities():
    inf, nan = math.inf, math.nan
    assert graphc.tensor([inf, nan]).hypot(graphc.tensor([nan, -inf])).tolist() == [inf, inf]
    assert graphc.tensor([inf, -inf, inf]).logaddexp(graphc.tensor([inf, -inf, 1.0])).tolist() == [inf, -inf, inf]
    assert graphc.tensor([inf, -inf, 1.0]).isposinf().tolist() == [True, False, False]
    assert graphc.tensor([inf, -inf, 1.0]).isneginf().tolist() == [False, True, False]
    top = float(np.finfo(np.float32).max)
    replaced = graphc.tensor([nan, inf, -inf, 2.0])
    assert replaced.nan_to_num().tolist() == [0, top, -top, 2]
    assert replaced.nan_to_num(1.0, 3.0, -3.0).tolist() == [1, 3, -3, 2]
    assert graphc.tensor([1, 2]).nan_to_num().tolist() == [1, 2]


def test_nan_gives_way_in_fmax_and_fmin():
    a, b = np.array([np.nan, 1.0, np.nan]), np.array([2.0, np.nan, np.nan])
    np.testing.assert_array_equal(graphc.tensor(a).fmax(graphc.tensor(b)).numpy(), [2, 1, np.nan])
    np.testing.assert_array_equal(graphc.tensor(a).fmin(graphc.tensor(b)).numpy(), [2, 1, np.nan])


def test_xlogy():
    x, y = np.array([0.0, 0.0, 2.0, 0.0]), np.array([0.0, np.inf, 3.0, np.nan])
    np.testing.assert_allclose(graphc.tensor(x).xlogy(graphc.tensor(y)).numpy(), [0, 0, 2 * np.log(3.0), np.nan])
    assert graphc.tensor([0.0, 1.0]).xlogy(1.0).tolist() == [0, 0]


def test_limits_and_powers():
    assert graphc.tensor([1, 2, 3]).clamp_min(2).tolist() == [2, 2, 3]
    assert graphc.tensor([1, 2, 3]).clamp_max(2).tolist() == [1, 2, 2]
    assert graphc.tensor([0.0, 0.5, 1.0]).logit(0.25).tolist() == pytest.approx([-math.log(3), 0, math.log(3)])
    power = graphc.tensor([2, 3]).float_power(graphc.tensor([3, 0]))
    assert (power.dtype, power.tolist()) == (graphc.float64, [8, 1])
    assert graphc.tensor([1, 3]).bitwise_left_shift(2).tolist() == [4, 12]
    assert graphc.tensor([-8, 9]).bitwise_right_shift(1).tolist() == [-4, 4]


def test_positive_refuses_booleans():
    x = graphc.tensor([-1.0])
    assert x.positive() is x
    with pytest.raises(ArgumentError, match="booleans"):
        graphc.tensor([True]).positive()
