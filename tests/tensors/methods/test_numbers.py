"""Decomposition of numbers, compared with numpy."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.autograd import gradcheck
from graphc.errors import DTypeError

RNG = np.random.default_rng(0)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 5e-324, 1e-310, 2.2250738585072014e-308, 1e308, np.inf, -np.inf, np.nan]
WIDE = np.concatenate([RNG.normal(size=40) * 10.0 ** RNG.integers(-300, 300, 40), SPECIAL])
NARROW = np.concatenate(
    [RNG.normal(size=40) * 10.0 ** RNG.integers(-44, 37, 40), [0.0, -0.0, 1.0, 1e-45, np.inf, np.nan]]
)
ALL = [WIDE, NARROW.astype(np.float32)]


def both(function, *operands):
    """Return the results of eager and compiled code, which must be equal."""
    tensors = [graphc.tensor(v) for v in operands]
    eager, compiled = function(*tensors), graphc.compile(function)(*tensors)
    for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (eager, compiled)), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    return eager


@pytest.mark.parametrize("values", ALL, ids=["f64", "f32"])
def test_mantissas_and_exponents(values):
    found = both(lambda x: tuple(x.frexp()), values)
    mantissa, exponent = np.frexp(values)
    np.testing.assert_array_equal(found[0].numpy(), mantissa)
    plain = np.isfinite(values)
    np.testing.assert_array_equal(found[1].numpy()[plain], exponent[plain])
    assert found[1].dtype is graphc.int32 and found[0].numpy().dtype == values.dtype
    back = graphc.ldexp(found[0], found[1])
    usual = plain & (np.abs(values) > 1e-30)
    np.testing.assert_allclose(back.numpy()[usual & (np.abs(values) < 1e30)], values[usual & (np.abs(values) < 1e30)])


@pytest.mark.parametrize("values", ALL, ids=["f64", "f32"])
def test_the_next_number(values):
    others = np.roll(values, 7)
    found = both(lambda x, y: x.nextafter(y), values, others)
    np.testing.assert_array_equal(found.numpy(), np.nextafter(values, others))


def test_the_next_number_broadcasts_and_has_the_gradient_of_the_first():
    x = graphc.ones(2, 1, requires_grad=True)
    other = graphc.tensor([0.0, 2.0, 1.0, float("nan")], requires_grad=True)
    found = x.nextafter(other)
    found.backward(graphc.tensor([[1.0, 2.0, 4.0, 8.0]] * 2))
    assert found.shape == (2, 4)
    assert x.grad.tolist() == [[11.0], [11.0]] and other.grad is None
    y = graphc.ones(2)
    y.nextafter_(graphc.tensor(2.0))
    assert y.tolist() == [1 + 2.0**-23] * 2


def test_powers_of_two_have_gradients():
    x, n = graphc.tensor(RNG.normal(size=4)), graphc.tensor(RNG.normal(size=4))
    assert gradcheck(graphc.ldexp, [x.requires_grad_(), n.requires_grad_()])
    assert gradcheck(lambda x: x.frexp().mantissa, [x])
    assert graphc.ldexp(graphc.tensor([3]), 2).tolist() == [12.0]


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_common_divisors_and_multiples(name, dtype):
    low = 0 if dtype is np.uint8 else -15
    a, b = (RNG.integers(low, 16, shape).astype(dtype) for shape in ((5, 1), (6,)))
    found = both(getattr(graphc, name), a, b)
    np.testing.assert_array_equal(found.numpy(), getattr(np, name)(a, b))
    assert found.numpy().dtype == dtype


def test_they_take_whole_numbers_and_write_in_place():
    x = graphc.tensor([12, 18])
    assert x.gcd_(graphc.tensor(8)) is x and x.tolist() == [4, 2] and x.lcm_(graphc.tensor([6, 3])).tolist() == [12, 6]
    assert graphc.gcd(graphc.tensor([6], dtype=graphc.int8), 300).tolist() == [2]
    with pytest.raises(DTypeError, match="gcd takes integers"):
        graphc.gcd(graphc.ones(2), graphc.ones(2))
    with pytest.raises(DTypeError, match="frexp takes a floating-point tensor"):
        graphc.frexp(graphc.tensor([1]))
