"""Special functions composed of operations: Bessel functions, the normal distribution, Hurwitz's zeta function.

Integrals of smooth functions become sums of fixed length, in f64 even for f32. A periodic integrand uses equal steps,
whose error falls faster than any power of their number; other integrands use Gauss-Legendre quadrature.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.dtypes import float32, float64
from graphc.base.errors import AttributeValueError
from graphc.ops.define import common_type
from graphc.ops.effects.state import stop_gradient
from graphc.ops.pointwise import elementary, gamma, special
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.pointwise.quadrature import column, gauss_legendre, row, sum_last
from graphc.tensors.tensor_base import TensorBase, need_tensor

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor

__all__ = ["bessel_j0", "bessel_j1", "entr", "erfcx", "gammainc", "gammaincc", "i0", "i0e", "i1", "i1e", "log_ndtr"]
__all__ += ["ndtr", "ndtri", "polygamma", "xlog1py", "zeta"]


def _in_f64(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compute a function in f64 for floating-point tensors (others become f32) and numbers beside them."""

    @functools.wraps(function)
    def call(input: Any, *others: Any) -> Any:
        operands = [input, *others]
        need_tensor(function.__name__, next((v for v in operands if isinstance(v, TensorBase)), input))
        dtype = common_type(operands, function.__name__)
        dtype = dtype if dtype.kind == "f" else float32
        wide = [ew.cast(v, dtype=float64) if isinstance(v, TensorBase) else row(v) for v in operands]
        result = function(*wide)
        return result if dtype is float64 else ew.cast(result, dtype=dtype)

    return call


# ---- Bessel functions: integrals over half a turn up to a bound, Hankel's expansions beyond

_BOUND = 30.0
"""From this bound on the expansions are exact to the rounding unit."""
_STEPS = 64
"""Equal steps in half a turn; the error is a Bessel function of twice that order."""
_ANGLES = np.arange(_STEPS + 1) * (math.pi / _STEPS)
_WEIGHTS = np.where((np.arange(_STEPS + 1) == 0) | (np.arange(_STEPS + 1) == _STEPS), 0.5, 1.0) / _STEPS
_SQUARES = np.sin(_ANGLES) ** 2 * _WEIGHTS
_EXPANSION = 22
"""Number of terms; the last ones are about as large as the rounding unit at the bound."""


def _hankel(order: int) -> list[float]:
    """Return the coefficients of the powers of 1 / x in Hankel's expansion."""
    coefficients = [1.0]
    for k in range(1, _EXPANSION):
        coefficients.append(coefficients[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
    return coefficients


def _polynomial(x: Any, coefficients: list[float]) -> Any:
    total: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = ew.add(ew.mul(x, total), c)
    return total


def _modified(x: Any, order: int) -> Any:
    """Compute ``exp(-|x|) I(x)``, the scaled modified Bessel function."""
    size = ew.abs(x)
    near = ew.lt(size, _BOUND)
    inner, outer = ew.where(near, size, 0.0), ew.where(near, _BOUND, size)
    weights = _SQUARES if order else _WEIGHTS
    integral = sum_last(ew.mul(mathematics.exp(ew.mul(column(inner), row(np.cos(_ANGLES) - 1))), row(weights)))
    signed = [c * (-1) ** k for k, c in enumerate(_hankel(order))]
    far = ew.mul(_polynomial(ew.reciprocal(outer), signed), mathematics.rsqrt(ew.mul(outer, 2 * math.pi)))
    return _joined(x, near, integral, far, order)


def _unscaled(x: Any, order: int) -> Any:
    """Compute ``I(x)``, NaN at infinity as in PyTorch. Where the exponential overflows, so do the function and its
    gradient; the product rule would subtract infinities there."""
    power = mathematics.exp(ew.abs(x))
    infinite = ew.logical_and(ew.eq(power, math.inf), ew.ne(ew.abs(x), math.inf))
    finite = ew.where(infinite, 0.0, x)
    product = ew.mul(mathematics.exp(ew.abs(finite)), _modified(finite, order))
    return ew.where(infinite, ew.mul(power, ew.sign(x)) if order else power, product)


def _joined(x: Any, near: Any, integral: Any, far: Any, order: int) -> Any:
    """Select integrals if ``near``, else expansions in ``|x|``. For order 1, which is odd, the integrals lack a factor
    of x, and the factor gives them the right gradient at 0."""
    if order:
        integral, far = ew.mul(ew.where(near, x, 0.0), integral), ew.mul(ew.sign(x), far)
    return ew.where(near, integral, far)


@_in_f64
def i0e(input: Any) -> Tensor:
    """Compute ``exp(-|x|)`` times the modified Bessel function of order 0."""
    return _modified(input, 0)


@_in_f64
def i0(input: Any) -> Tensor:
    """Compute the modified Bessel function of the first kind of order 0."""
    return _unscaled(input, 0)


@_in_f64
def i1e(input: Any) -> Tensor:
    """Compute ``exp(-|x|)`` times the modified Bessel function of order 1."""
    return _modified(input, 1)


@_in_f64
def i1(input: Any) -> Tensor:
    """Compute the modified Bessel function of the first kind of order 1."""
    return _unscaled(input, 1)


def _oscillating(x: Any, order: int) -> Any:
    """Compute the Bessel function of the first kind J."""
    size = ew.abs(x)
    near = ew.lt(size, _BOUND)
    inner, outer = ew.where(near, size, 0.0), ew.where(near, _BOUND, size)
    weights = _SQUARES if order else _WEIGHTS
    integral = sum_last(ew.mul(mathematics.cos(ew.mul(column(inner), row(np.cos(_ANGLES)))), row(weights)))
    terms = _hankel(order)
    square = ew.reciprocal(ew.mul(outer, outer))
    even = _polynomial(square, [c * (-1) ** k for k, c in enumerate(terms[0::2])])
    odd = ew.div(_polynomial(square, [c * (-1) ** k for k, c in enumerate(terms[1::2])]), outer)
    sine, cosine = mathematics.sin(outer), mathematics.cos(outer)
    # NOTE: cosine and sine of x - pi / 4 (order 0) or x - 3 pi / 4, times the root of 2, without rounding x.
    turned = (ew.add(cosine, sine), ew.sub(sine, cosine)) if not order else None
    first, second = turned or (ew.sub(sine, cosine), ew.neg(ew.add(sine, cosine)))
    wave = ew.sub(ew.mul(even, first), ew.mul(odd, second))
    far = ew.mul(wave, mathematics.rsqrt(ew.mul(outer, math.pi)))
    return _joined(x, near, integral, far, order)


@_in_f64
def bessel_j0(input: Any) -> Tensor:
    """Compute the Bessel function of the first kind of order 0."""
    return _oscillating(input, 0)


@_in_f64
def bessel_j1(input: Any) -> Tensor:
    """Compute the Bessel function of the first kind of order 1."""
    return _oscillating(input, 1)


# ---- the normal distribution

_NODES = 32
_NEGLIGIBLE = 38.0
"""Minus the logarithm of the neglected tail of an integral, relative to its largest part."""
_NEWTON = 6
_LARGE = 8e307
"""A number whose double is finite too; beyond it ``erfcx`` is below the smallest normal number."""
_LARGE_ROOT = 1e150
"""A number whose square is finite and absorbs the other summands here."""


def _erfcx(x: Any) -> Any:
    """Compute ``exp(x**2) erfc(x)``, the integral of ``2 / sqrt(pi) exp(-t**2 - 2 x t)`` over t > 0."""
    negative = ew.lt(x, 0)
    # NOTE: the gradient at 0 is that of the positive side; `abs` has none there.
    size = ew.minimum(ew.where(negative, ew.neg(x), x), _LARGE)
    some = ew.minimum(size, _LARGE_ROOT)
    root = ew.maximum(mathematics.sqrt(ew.add(ew.mul(some, some), _NEGLIGIBLE)), size)
    end = ew.div(_NEGLIGIBLE, ew.add(root, size))
    nodes, weights = gauss_legendre(_NODES)
    t = ew.mul(column(stop_gradient(end)), row(nodes))
    value = mathematics.exp(ew.neg(ew.mul(t, ew.add(t, ew.mul(column(size), 2.0)))))
    positive = ew.mul(sum_last(ew.mul(value, row(weights * (2 / math.sqrt(math.pi))))), stop_gradient(end))
    below = ew.where(negative, x, 0.0)  # The gradient of an infinite power would be NaN.
    reflected = ew.sub(ew.mul(mathematics.exp(ew.mul(below, below)), 2.0), positive)
    return ew.where(negative, reflected, ew.where(ew.eq(x, math.inf), 0.0, positive))


@_in_f64
def erfcx(input: Any) -> Tensor:
    """Compute ``exp(x**2) erfc(x)``, which does not underflow for large x."""
    return _erfcx(input)


@_in_f64
def ndtr(input: Any) -> Tensor:
    """Compute the cumulative distribution function of the standard normal distribution."""
    return ew.mul(elementary.erfc(ew.mul(input, -math.sqrt(0.5))), 0.5)


@_in_f64
def log_ndtr(input: Any) -> Tensor:
    """Compute the logarithm of ``ndtr``, without underflow."""
    low = ew.lt(input, -1.0)
    below, above = ew.where(low, input, -1.0), ew.where(low, 0.0, input)
    tail = mathematics.log(ew.mul(_erfcx(ew.mul(below, -math.sqrt(0.5))), 0.5))
    far = ew.sub(tail, ew.mul(ew.mul(below, below), 0.5))
    near = mathematics.log1p(ew.mul(elementary.erfc(ew.mul(above, math.sqrt(0.5))), -0.5))
    return ew.where(low, ew.where(ew.eq(input, -math.inf), -math.inf, far), near)


_FAR = -30.0
"""Below it seven terms of the asymptotic series of the tail are exact; ``ndtr`` underflows below -37."""
_TAIL = [1.0, -1.0, 3.0, -15.0, 105.0, -945.0, 10395.0]


def _log_of_tail(z: Any) -> tuple[Any, Any]:
    """Return the logarithm of ``ndtr(z)`` for z <= 0, and its derivative."""
    is_far = ew.lt(z, _FAR)
    near, far = ew.where(is_far, _FAR, z), ew.where(is_far, z, _FAR)
    share = ew.mul(elementary.erfc(ew.mul(near, -math.sqrt(0.5))), 0.5)
    density = ew.mul(mathematics.exp(ew.mul(ew.mul(near, near), -0.5)), 1 / math.sqrt(2 * math.pi))
    series = _polynomial(ew.reciprocal(ew.mul(far, far)), _TAIL)
    ratio = ew.div(series, ew.neg(far))
    exponent = ew.sub(ew.mul(ew.mul(far, far), -0.5), 0.5 * math.log(2 * math.pi))
    logarithm = ew.where(is_far, ew.add(exponent, mathematics.log(ratio)), mathematics.log(share))
    return logarithm, ew.where(is_far, ew.reciprocal(ratio), ew.div(density, share))


@_in_f64
def ndtri(input: Any) -> Tensor:
    """Compute the inverse of ``ndtr`` by Newton's method on its logarithm: infinite at 0 and 1, NaN beyond."""
    inside = ew.logical_and(ew.gt(input, 0), ew.lt(input, 1))
    p = ew.where(inside, input, 0.5)
    upper = ew.gt(p, 0.5)
    small = ew.where(upper, ew.sub(1.0, p), p)
    target = mathematics.log(small)
    z: Any = ew.neg(mathematics.sqrt(ew.maximum(ew.mul(ew.add(target, math.log(2)), -2.0), 0.0)))
    for _ in range(_NEWTON):
        z = stop_gradient(z)
        logarithm, slope = _log_of_tail(z)
        z = ew.sub(z, ew.div(ew.sub(logarithm, target), slope))
    quantile = ew.where(upper, ew.neg(z), z)
    # NOTE: `logit` has the limits of the quantile at 0 and 1, with its gradient, and NaN beyond.
    return ew.where(inside, quantile, elementary.logit(ew.where(inside, 0.5, input)))


# ---- others


def entr(input: Any) -> Tensor:
    """Compute ``-x log(x)``: 0 at 0, minus infinity below."""
    need_tensor("entr", input)
    return elementary.entr(input)


def xlog1py(input: Any, other: Any) -> Tensor:
    """Compute ``x log(1 + y)``: 0 for x = 0 (NaN if y is NaN)."""
    need_tensor("xlog1py", next((v for v in (input, other) if isinstance(v, TensorBase)), input))
    return elementary.xlog1py(input, other)


_SHIFT = 10
"""Terms of the zeta function to add before the Euler-Maclaurin formula applies."""
_LARGEST_EXPONENT = 1e3
"""From about 310 on the corrections are 0, powers of 1/10; infinity times 0 would be NaN."""
_BERNOULLI = (*special.BERNOULLI, 43867 / 798, -174611 / 330)


@_in_f64
def zeta(input: Any, other: Any) -> Tensor:
    """Compute Hurwitz's zeta function, the sum of ``(q + k) ** -x`` over k from 0. Infinite at x = 1 and for q = 0 or a
    negative integer; NaN for x below 1 and for other negative q."""
    x, q = input, ew.add(other, ew.mul(ew.sign(input), 0.0))
    inside = ew.logical_and(ew.gt(x, 1), ew.gt(q, 0))
    x, q = ew.where(inside, x, 2.0), ew.where(inside, q, 1.0)
    total = sum_last(mathematics.pow(ew.add(column(q), row(np.arange(_SHIFT))), column(ew.neg(x))))
    end = ew.add(q, float(_SHIFT))
    power = mathematics.pow(end, ew.neg(x))
    total = ew.add(total, ew.mul(power, ew.add(ew.div(end, ew.sub(x, 1.0)), 0.5)))
    inverse = ew.reciprocal(end)
    x = ew.minimum(x, _LARGEST_EXPONENT)
    factor, square = ew.mul(ew.mul(x, power), inverse), ew.mul(inverse, inverse)
    for k, number in enumerate(_BERNOULLI, 1):
        total = ew.add(total, ew.mul(factor, number / math.factorial(2 * k)))
        rise = ew.mul(ew.add(x, float(2 * k - 1)), ew.add(x, float(2 * k)))
        factor = ew.mul(ew.mul(factor, rise), square)
    pole = ew.logical_or(ew.eq(input, 1), ew.logical_and(ew.le(other, 0), ew.eq(other, mathematics.floor(other))))
    pole = ew.logical_and(pole, ew.ge(input, 1))
    return ew.where(inside, total, ew.where(pole, math.inf, math.nan))


def gammainc(input: Any, other: Any) -> Tensor:
    """Compute the regularised lower incomplete gamma function of a = ``input`` and x = ``other``, differentiable in
    both."""
    need_tensor("gammainc", input)
    return gamma.gammainc(input, other)


def gammaincc(input: Any, other: Any) -> Tensor:
    """Compute the regularised upper incomplete gamma function of a = ``input`` and x = ``other``, differentiable in
    both."""
    need_tensor("gammaincc", input)
    return gamma.gammaincc(input, other)


def polygamma(n: int, input: Any) -> Tensor:
    """Compute the derivative of order ``n`` of ``digamma``."""
    need_tensor("polygamma", input)
    if n < 0:
        raise AttributeValueError(f"polygamma: the order must be 0 or more, got {n}")
    return special.polygamma(input, n=n)
