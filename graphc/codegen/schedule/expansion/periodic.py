"""sin, cos and tan of f32 and f64 as expressions of primitive operations.

An angle is reduced to ``quadrant pi/2 + r``, and polynomials in r^2 are evaluated for both sine and cosine.
f32 is reduced in f64 lanes. f64 is reduced by pi/2 in three parts up to 2^47 (1.4e14), and beyond by a function on
single lanes (llvm_angle).
Coefficients: tools/codegen/minimax.py prints them all. Errors measured: docs/vector_math.md.
"""

from __future__ import annotations

from graphc.base.dtypes import float32, float64, int32, int64
from graphc.codegen.schedule.expansion.steps import (
    F64,
    format_of,
    from_bits,
    hexes,
    nearest,
    polynomial,
    shift_left,
    to_bits,
)
from graphc.ir.kernel.large_angle import FROM, LEAST_EXPONENT, QUADRANT_BITS
from graphc.ir.kernel.nest import NestBuilder, Scalar

HALF_PI = hexes("0x1.921fb54442d18p+0 0x1.1a62633145c06p-54 0x1.c1cd129024e09p-107")
"""pi/2 as a sum of positive numbers, so that -0 stays -0 when they are subtracted."""
TWO_OVER_PI = (
    (0.0, *hexes("0x1.45f306dc9c882p-1 0x1.4a7f09d5f47d5p-54")),
    (2.0**50, *hexes("0x1.b9391054a7f09p-26 0x1.abe8fa9a6ee07p-79")),
    (2.0**75, *hexes("0x1.529fc2757d1f5p-52 0x1.a6ee06db14acdp-107")),
    (2.0**100, *hexes("0x1.d5f47d4d37703p-78 0x1.b6295993c4390p-132")),
)
"""2/pi in two parts, for f32 of at least the first number: without the bits whose product with any such f32 is a
multiple of 4 (Payne and Hanek, 1983). Below the next entry's first number, products stay below 2^51."""

SIN_F32 = hexes("-0x1.55552p-3 0x1.10fb5ap-7 -0x1.95f694p-13")
"""(sin r - r) / r^3 in r^2, |r| <= 0.955."""
COS_F32 = hexes("-0x1.fffffep-2 0x1.5554cep-5 -0x1.6be94ep-10 0x1.93dff6p-16")
"""(cos r - 1) / r^2 in r^2, |r| <= 0.955."""
SIN_F64 = hexes(
    "-0x1.5555555555541p-3 0x1.111111110ec15p-7 -0x1.a01a019a8360ap-13 0x1.71de341f60c6bp-19"
    " -0x1.ae5d5a8650f25p-26 0x1.5d46294b44342p-33"
)
"""(sin r - r) / r^3 in r^2, |r| <= 1.04 pi/4."""
COS_F64 = hexes(
    "-0x1p-1 0x1.5555555555544p-5 -0x1.6c16c16c1413fp-10 0x1.a01a019b23ecbp-16 -0x1.27e4f6f068693p-22"
    " 0x1.1ee9307c7a08dp-29 -0x1.8f4f95465d638p-37"
)
"""(cos r - 1) / r^2 in r^2, |r| <= 1.04 pi/4."""


def _reduced_f32(nest: NestBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """Return ``(quadrant, r)``: the quadrant as an i32, valid modulo 4, and r as an f64 with |r| <= 0.955."""
    size = nest.op("abs", x)
    (_, high, low), *others = TWO_OVER_PI
    high, low = nest.const(high, float64), nest.const(low, float64)
    for least, other_high, other_low in others:
        large = size >= least
        high, low = nest.select(large, other_high, high), nest.select(large, other_low, low)
    wide = x.cast(float64)
    shifted = nest.fma(wide, high, F64.magic)
    # The first difference is exact: no bit of the product is below 2^-51.
    fraction = nest.fma(wide, low, nest.fma(wide, high, -(shifted - F64.magic)))
    return to_bits(nest, shifted).cast(int32), fraction * HALF_PI[0]


def _reduced_f64(nest: NestBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """Return ``(quadrant, r)``, the quadrant as an i64 (Cody and Waite, 1980; the first fused product is exact)."""
    shifted, n = nearest(nest, x, 1 / HALF_PI[0])
    r = x
    for term in HALF_PI:
        r = nest.fma(n, -term, r)
    return _or_large(nest, x, to_bits(nest, shifted), r)


def _or_large(nest: NestBuilder, x: Scalar, quadrant: Scalar, r: Scalar) -> tuple[Scalar, Scalar]:
    """Return ``(quadrant, r)``, or both for a large angle from ``reduce_large``, which puts the quadrant into the
    exponent."""
    is_large, bits = nest.op("abs", x) > FROM, to_bits(nest, nest.op("reduce_large", x))
    exponent = nest.op("shr_unsigned", bits, nest.const(F64.mantissa, int64)) & 0x7FF
    turns = nest.op("shr", exponent - LEAST_EXPONENT, nest.const(QUADRANT_BITS, int64)) & 3
    angle = from_bits(nest, bits - shift_left(nest, turns, F64.mantissa + QUADRANT_BITS))
    return nest.select(is_large, turns, quadrant), nest.select(is_large, angle, r)


def _reduced_exactly(nest: NestBuilder, x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Return ``(quadrant, r, rest)``: the reduced angle with its rounding error."""
    if x.dtype is float32:
        quadrant, wide = _reduced_f32(nest, x)
        r = wide.cast(float32)
        return quadrant, r, (wide - r.cast(float64)).cast(float32)
    shifted, n = nearest(nest, x, 1 / HALF_PI[0])
    first = nest.fma(n, -HALF_PI[0], x)
    product = n * HALF_PI[1]
    second = first - product
    back = second - first
    error = (first - (second - back)) - (product + back)
    low = error - nest.fma(n, HALF_PI[2], nest.fma(n, HALF_PI[1], -product))
    r = second + low
    rest = nest.select(nest.op("abs", x) > FROM, nest.op("reduce_large_rest", x), low - (r - second))
    return *_or_large(nest, x, to_bits(nest, shifted), r), rest


def _reduced(nest: NestBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    if x.dtype is float64:
        return _reduced_f64(nest, x)
    quadrant, r = _reduced_f32(nest, x)
    return quadrant, r.cast(float32)


def _sine_from(nest: NestBuilder, quadrant: Scalar, r: Scalar) -> Scalar:
    """Compute the sine of ``quadrant pi/2 + r``."""
    layout = format_of(r.dtype)
    of_sine, of_cosine = (SIN_F32, COS_F32) if r.dtype is float32 else (SIN_F64, COS_F64)
    square = r * r
    sine = nest.fma(r * square, polynomial(nest, square, of_sine), r)
    sine = nest.op("copysign", sine, r)  # the sum loses the sign of -0
    cosine = nest.fma(square, polynomial(nest, square, of_cosine), 1.0)
    value = nest.select((quadrant & 1).eq(0), sine, cosine)
    sign = shift_left(nest, quadrant, layout.integer.bits - 2) & layout.sign_mask
    return from_bits(nest, to_bits(nest, value) ^ sign)


def sin(nest: NestBuilder, x: Scalar) -> Scalar:
    """Compute the sine of an angle in radians."""
    return _sine_from(nest, *_reduced(nest, x))


def cos(nest: NestBuilder, x: Scalar) -> Scalar:
    """Compute the cosine, which is the sine one quadrant further."""
    quadrant, r = _reduced(nest, x)
    return _sine_from(nest, quadrant + 1, r)


def tan(nest: NestBuilder, x: Scalar) -> Scalar:
    """Compute the tangent: sine by cosine, or -cosine by sine in odd quadrants, each as a sum of two numbers."""
    quadrant, r, rest = _reduced_exactly(nest, x)
    of_sine, of_cosine = (SIN_F32, COS_F32) if r.dtype is float32 else (SIN_F64, COS_F64)
    square = r * r
    bend = r * square * polynomial(nest, square, of_sine) + rest
    sine = r + bend
    drop = nest.fma(square, polynomial(nest, square, of_cosine), -rest * r)
    cosine = drop + 1.0
    sine_low, cosine_low = bend - (sine - r), drop - (cosine - 1.0)
    odd = (quadrant & 1).ne(0)
    top, top_low = nest.select(odd, -cosine, sine), nest.select(odd, -cosine_low, sine_low)
    inverse = 1.0 / nest.select(odd, sine, cosine)
    quotient = top * inverse
    error = nest.fma(-quotient, nest.select(odd, sine, cosine), top)
    error = error + nest.fma(-quotient, nest.select(odd, sine_low, cosine_low), top_low)
    return nest.select(x.eq(0.0), x, nest.fma(error, inverse, quotient))  # the sums lose the sign of -0
