"""Rules of complex functions: parts of results from parts of operands."""

from __future__ import annotations

import math
from typing import Any

from graphc.ops.pointwise.parts_of_complex import Complex, named

_LN_2, _LN_10 = math.log(2.0), math.log(10.0)


# ---- arithmetic


def quotient(x: Complex, y: Complex) -> Complex:
    """Return x / y. Both are first divided by the larger part of y, so that no square overflows (Smith, 1962)."""
    size = named.maximum(named.abs(y.real), named.abs(y.imag))
    c, d = named.div(y.real, size), named.div(y.imag, size)
    square = _sum_of_products(y.real, c, y.imag, d)
    return Complex(
        named.div(_sum_of_products(x.real, c, x.imag, d), square),
        named.div(_sum_of_products(x.imag, c, named.neg(x.real), d), square),
    )


def _sum_of_products(a: Any, c: Any, b: Any, d: Any) -> Any:
    """Return a c + b d."""
    return named.add(named.mul(a, c), named.mul(b, d))


def size(x: Complex) -> Any:
    """Return |x|."""
    return named.hypot(x.real, x.imag)


def direction(x: Complex) -> Complex:
    """Return x / |x|, or 0 for 0."""
    length = size(x)
    divisor = named.where(named.eq(length, 0), 1, length)
    return Complex(named.div(x.real, divisor), named.div(x.imag, divisor))


def scaled(x: Complex, factor: Any) -> Complex:
    """Scale x by a real factor."""
    return Complex(named.mul(x.real, factor), named.mul(x.imag, factor))


def turned(x: Complex) -> Complex:
    """Return i x."""
    return Complex(named.neg(x.imag), x.real)


def turned_back(x: Complex) -> Complex:
    """Return -i x."""
    return Complex(x.imag, named.neg(x.real))


# ---- powers, exponentials, logarithms


def exp(x: Complex) -> Complex:
    """Return exp(a) (cos(b) + i sin(b))."""
    length = named.exp(x.real)
    return Complex(named.mul(length, named.cos(x.imag)), named.mul(length, named.sin(x.imag)))


def expm1(x: Complex) -> Complex:
    """Return exp(x) - 1. The real part is expm1(a) cos(b) - 2 sin(b / 2)^2, which is accurate near 0."""
    half = named.sin(named.mul(x.imag, 0.5))
    cosine = named.mul(named.expm1(x.real), named.cos(x.imag))
    real = named.sub(cosine, named.mul(2, named.mul(half, half)))
    return Complex(real, named.mul(named.exp(x.real), named.sin(x.imag)))


def log(x: Complex) -> Complex:
    """Return log|x| + i angle(x)."""
    return Complex(named.log(size(x)), named.atan2(x.imag, x.real))


def log1p(x: Complex) -> Complex:
    """Return log(1 + x). The real part is log1p(a (a + 2) + b b) / 2 where that is near 0."""
    grown = named.add(x.real, 1)
    square = _sum_of_products(x.real, named.add(x.real, 2), x.imag, x.imag)
    near = named.lt(named.abs(square), 0.5)
    small = named.mul(0.5, named.log1p(named.where(near, square, 0)))
    large = named.log(named.hypot(grown, x.imag))
    return Complex(named.where(near, small, large), named.atan2(x.imag, grown))


def exp2(x: Complex) -> Complex:
    """Return 2 to the power x."""
    return exp(scaled(x, _LN_2))


def log2(x: Complex) -> Complex:
    """Return the logarithm to base 2."""
    return scaled(log(x), 1 / _LN_2)


def log10(x: Complex) -> Complex:
    """Return the logarithm to base 10."""
    return scaled(log(x), 1 / _LN_10)


def sqrt(x: Complex) -> Complex:
    """Return the root with a nonnegative real part: compute the larger part first, and the other one by division."""
    larger = named.sqrt(named.mul(0.5, named.add(size(x), named.abs(x.real))))
    smaller = named.div(x.imag, named.mul(2, named.where(named.eq(larger, 0), 1, larger)))
    right = named.ge(x.real, 0)
    return Complex(
        named.where(right, larger, named.abs(smaller)), named.where(right, smaller, named.copysign(larger, x.imag))
    )


def power(x: Complex, y: Complex) -> Any:
    """Return exp(y log(x)), or products for small integer exponents. A power of 0 is 0 for an exponent with a positive
    real part, 1 for exponent 0, else NaN."""
    exponent = [v.node.attrs["value"].item() if v.is_scalar_constant else None for v in (y.real, y.imag)]
    if exponent in ([1, 0], [2, 0], [3, 0]):
        square = x if exponent[0] == 1 else named.mul(x, x)
        return named.mul(square, x) if exponent[0] == 3 else square
    is_zero = named.eq(x, 0)
    regular = exp(named.mul(y, log(named.where(is_zero, 1, x))))
    at_zero = named.where(named.gt(y.real, 0), 0, named.where(named.eq(y, 0), 1, scaled(regular, math.nan)))
    return named.where(is_zero, at_zero, regular)


# ---- circular and hyperbolic functions


def sin(x: Complex) -> Complex:
    """Return sin(a) cosh(b) + i cos(a) sinh(b)."""
    return Complex(named.mul(named.sin(x.real), named.cosh(x.imag)), named.mul(named.cos(x.real), named.sinh(x.imag)))


def cos(x: Complex) -> Complex:
    """Return cos(a) cosh(b) - i sin(a) sinh(b)."""
    down = named.neg(named.sin(x.real))
    return Complex(named.mul(named.cos(x.real), named.cosh(x.imag)), named.mul(down, named.sinh(x.imag)))


def sinh(x: Complex) -> Complex:
    """Return sinh(a) cos(b) + i cosh(a) sin(b)."""
    return Complex(named.mul(named.sinh(x.real), named.cos(x.imag)), named.mul(named.cosh(x.real), named.sin(x.imag)))


def cosh(x: Complex) -> Complex:
    """Return cosh(a) cos(b) + i sinh(a) sin(b)."""
    return Complex(named.mul(named.cosh(x.real), named.cos(x.imag)), named.mul(named.sinh(x.real), named.sin(x.imag)))


def tanh(x: Complex) -> Complex:
    """Return (s (1 + t t) + i t (1 - s s)) / (1 + s s t t) with s = tanh(a) and t = tan(b); 1 - s s is 1 /
    cosh(a)^2."""
    s, t = named.tanh(x.real), named.tan(x.imag)
    rest = named.div(1, named.cosh(x.real))
    denominator = named.add(named.mul(named.mul(s, s), named.mul(t, t)), 1)
    return Complex(
        named.div(named.mul(s, named.add(named.mul(t, t), 1)), denominator),
        named.div(named.mul(t, named.mul(rest, rest)), denominator),
    )


def tan(x: Complex) -> Complex:
    """Return -i tanh(i x)."""
    return turned_back(tanh(turned(x)))


# ---- inverses (Kahan, Branch cuts for complex elementary functions, 1987)


def _roots(x: Complex) -> tuple[Complex, Complex]:
    """Return sqrt(1 - x) and sqrt(1 + x)."""
    return sqrt(named.sub(1, x)), sqrt(named.add(x, 1))


def asin(x: Complex) -> Complex:
    """Return the inverse sine."""
    low, high = _roots(x)
    real = named.atan2(x.real, named.real(named.mul(low, high)))
    return Complex(real, named.asinh(named.imag(named.mul(named.conj(low), high))))


def acos(x: Complex) -> Complex:
    """Return the inverse cosine."""
    low, high = _roots(x)
    real = named.mul(2, named.atan2(low.real, high.real))
    return Complex(real, named.asinh(named.imag(named.mul(named.conj(high), low))))


def acosh(x: Complex) -> Complex:
    """Return the inverse hyperbolic cosine."""
    low, high = sqrt(named.sub(x, 1)), sqrt(named.add(x, 1))
    real = named.asinh(named.real(named.mul(named.conj(low), high)))
    return Complex(real, named.mul(2, named.atan2(low.imag, high.real)))


def asinh(x: Complex) -> Complex:
    """Return -i asin(i x)."""
    return turned_back(asin(turned(x)))


def atanh(x: Complex) -> Complex:
    """Return (log(1 + x) - log(1 - x)) / 2."""
    return scaled(named.sub(log1p(x), log1p(named.neg(x))), 0.5)


def atan(x: Complex) -> Complex:
    """Return -i atanh(i x)."""
    return turned_back(atanh(turned(x)))
