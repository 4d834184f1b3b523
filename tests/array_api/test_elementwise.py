"""Functions of each element beside those of numpy, with gradients and in compiled code."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.array_api as xp
from graphc.array_api import Array, elementwise
from graphc.base.errors import ArgumentError, DTypeError

OF_BITS = {name for name in elementwise.OPS if name.startswith("bitwise")}
OF_TWO = {
    *("add", "atan2", "copysign", "divide", "equal", "floor_divide", "greater", "greater_equal", "hypot", "less"),
    *("less_equal", "logaddexp", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply"),
    *("not_equal", "pow", "remainder", "subtract"),
}
OF_ONE = sorted(set(elementwise.OPS) - OF_TWO - OF_BITS)
NUMBERS = np.array([0.3, 0.7, -0.2, 0.9, -0.5], np.float32)


@pytest.mark.parametrize("name", OF_ONE)
def test_a_function_of_one_array_is_that_of_numpy(name):
    values = np.abs(NUMBERS) + 1 if name == "acosh" else np.abs(NUMBERS) if "log" in name or name == "sqrt" else NUMBERS
    result = getattr(xp, name)(gc.tensor(values))
    expected = getattr(np, name)(values)
    assert type(result) is Array and result.dtype.numpy == expected.dtype
    np.testing.assert_allclose(np.asarray(result), expected, rtol=2e-6)


@pytest.mark.parametrize("name", sorted(OF_TWO))
def test_a_function_of_two_arrays_is_that_of_numpy(name):
    a, b = np.abs(NUMBERS) if name == "pow" else NUMBERS, NUMBERS[::-1].astype(np.float64)
    result = getattr(xp, name)(gc.tensor(a), gc.tensor(b.copy()))
    expected = getattr(np, name)(a, b)
    assert type(result) is Array and result.dtype.numpy == expected.dtype
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12)
    np.testing.assert_allclose(
        np.asarray(getattr(xp, name)(2.0, gc.tensor(a))), getattr(np, name)(np.float32(2), a), rtol=2e-6
    )


@pytest.mark.parametrize("name", sorted(OF_BITS - {"bitwise_invert"}))
def test_a_function_of_bits_is_that_of_numpy(name):
    a, b = np.array([1, 6, 12], np.int32), np.array([3, 1, 2], np.int8)
    result = getattr(xp, name)(gc.tensor(a), gc.tensor(b))
    expected = getattr(np, name)(a, b)
    assert result.dtype.numpy == expected.dtype and result.tolist() == expected.tolist()


def test_bits_are_inverted():
    assert xp.bitwise_invert(xp.asarray([0, 5])).tolist() == [-1, -6]
    assert xp.bitwise_invert(xp.asarray([True, False])).tolist() == [False, True]


@pytest.mark.parametrize("name", ["ceil", "floor", "round", "trunc", "positive", "real", "conj"])
@pytest.mark.parametrize("dtype", [xp.int8, xp.uint8, xp.int64])
def test_whole_numbers_stay_what_they_are(name, dtype):
    x = xp.asarray([3, 4], dtype=dtype)
    result = getattr(xp, name)(x)
    result[0] = 7
    assert result.dtype is dtype and result.tolist() == [7, 4] and x.tolist() == [3, 4]


def test_nan_has_no_sign_but_a_bit_of_it():
    nan = float("nan")
    assert np.isnan(xp.sign(xp.asarray(nan)).item())
    assert xp.sign(xp.asarray([-3, 0, 2])).tolist() == [-1, 0, 1]
    assert xp.signbit(xp.asarray([-0.0, 0.0, -1.0])).tolist() == [True, False, True]
    assert xp.signbit(xp.asarray([-1, 0, 1])).tolist() == [True, False, False]
    assert xp.signbit(xp.copysign(xp.asarray(nan), -1.0)).item()


def test_clip_limits_to_numbers_and_arrays():
    x = xp.asarray([1.0, 5.0, 9.0])
    assert xp.clip(x, 2, 6).tolist() == [2.0, 5.0, 6.0]
    assert xp.clip(x, max=xp.asarray([[4.0], [6.0]])).tolist() == [[1.0, 4.0, 4.0], [1.0, 5.0, 6.0]]
    assert xp.clip(x, min=xp.asarray(2.0, dtype=xp.float64)).dtype is xp.float32
    integers = xp.asarray([1, 100], dtype=xp.int8)
    assert xp.clip(integers, -1000, 50).tolist() == [1, 50] and xp.clip(integers, 3, 1000).tolist() == [3, 100]
    assert xp.clip(x).tolist() == [1.0, 5.0, 9.0]
    with pytest.raises(ArgumentError):
        xp.clip([1.0], 0, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nextafter_is_that_of_numpy(dtype):
    a = np.array([0.0, -0.0, 1.0, 1.0, -2.5, np.inf, np.nan, 3.0], dtype)
    b = np.array([1.0, 0.0, 2.0, 0.0, -9.0, 0.0, 1.0, np.nan], dtype)
    result = np.asarray(xp.nextafter(gc.tensor(a), gc.tensor(b)))
    np.testing.assert_array_equal(result, np.nextafter(a, b))
    assert np.signbit(result[1]) == np.signbit(b[1])


def test_nextafter_is_compiled_and_has_the_gradient_of_its_first_operand():
    x = gc.tensor([1.0, 2.0], requires_grad=True)
    result = gc.compile(lambda x: xp.nextafter(x, 9.0))(x)
    assert result.tolist() == np.nextafter(np.float32([1, 2]), np.float32(9)).tolist()
    xp.sum(xp.nextafter(x, 9.0) * 3.0).backward()
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("name", ["exp", "multiply", "floor_divide", "remainder", "sign", "signbit", "hypot", "clip"])
def test_compiled_code_computes_the_same(name):
    a, b = gc.tensor(NUMBERS), gc.tensor(NUMBERS[::-1].copy())
    function = getattr(xp, name)
    arguments = (a,) if name in ("exp", "sign", "signbit") else (a, b)
    np.testing.assert_allclose(
        np.asarray(gc.compile(lambda *x: function(*x))(*arguments)), np.asarray(function(*arguments)), rtol=1e-6
    )


def test_gradients_go_through_functions():
    x = gc.tensor([0.5, 2.0], requires_grad=True)
    xp.sum(xp.logaddexp(x, 0.0) + xp.square(x)).backward()
    np.testing.assert_allclose(
        x.grad.numpy(), 1 / (1 + np.exp(-x.detach().numpy())) + 2 * x.detach().numpy(), rtol=1e-6
    )


def test_what_a_function_does_not_take_is_refused():
    with pytest.raises(ArgumentError, match="exp"):
        xp.exp(1.0)
    with pytest.raises(ArgumentError, match="add"):
        xp.add(xp.ones(2), [1.0, 2.0])
    with pytest.raises(DTypeError):
        xp.bitwise_and(xp.ones(2), 1)


def test_every_function_has_its_name_and_says_what_it_does():
    for name in elementwise.__all__:
        function = getattr(xp, name)
        assert function.__name__ == name and function.__doc__.strip().endswith(".")
