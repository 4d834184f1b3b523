"""pow of f32 and f64 as expressions of primitive operations: ``2^(y log2|x|)``, the logarithm in twice the precision.

Signs, zeros, infinities and NaNs follow IEEE 754 pow.
Coefficients: tools/codegen/minimax.py prints them all. Errors measured: docs/vector_math.md.
"""

from __future__ import annotations

from graphc.base.dtypes import float32, float64
from graphc.codegen.schedule.expansion.steps import (
    INF,
    NAN,
    clamp,
    hexes,
    nearest,
    polynomial,
    power_of_two,
    scale,
    split,
    split_any,
)
from graphc.ir.kernel.nest import NestBuilder, Scalar

LOG2 = hexes(
    "0x1.715476521ca2dp+0 -0x1.7154764ba9438p-1 0x1.ec70a3dc24165p-2 -0x1.71548455d45f7p-2 0x1.27744d0a19b78p-2"
    " -0x1.ec68bc64d01b6p-3 0x1.a6d179956c888p-3 -0x1.7245415f4d3acp-3 0x1.3c0f6ac996605p-3 -0x1.19b3e2ec74bf2p-3"
    " 0x1.689c3f2f238f7p-3 -0x1.539669f43b7b5p-3"
)
"""log2(1 + f) / f, |f| <= 1/3, as exact as f32 results need."""
EXP2_F32 = hexes(
    "0x1.ffffffff4e166p-1 0x1.62e430d042645p-1 0x1.ebfbe10e1f524p-3 0x1.c6aecc58a41a3p-5 0x1.3b2995febfcc5p-7"
    " 0x1.5f48c5e35af13p-10 0x1.4498f77bb2d48p-13"
)
"""2^g, |g| <= 1/2, as exact as f32 results need."""
ATANH = hexes(
    "0x1.9999999999967p-3 0x1.2492492498f15p-3 0x1.c71c71bc4eedp-4 0x1.745d1bd15188ap-4 0x1.3b12963c8a51fp-4"
    " 0x1.113a55847eb9ap-4 0x1.dac94166dcbc1p-5 0x1.019388d7b3aadp-4"
)
"""(atanh(s) / s - 1 - s^2 / 3) / s^4 in s^2, |s| <= 0.2."""
EXP2_F64 = hexes(
    "0x1p+0 0x1.62e42fefa39efp-1 0x1.ebfbdff82c5ap-3 0x1.c6b08d704a154p-5 0x1.3b2ab6fba0919p-7"
    " 0x1.5d87fe7892fabp-10 0x1.4309130d95019p-13 0x1.ffcbfca9f1adcp-17 0x1.62bfca4344accp-20"
    " 0x1.b52487490a85cp-24 0x1.e6175eca9eb7dp-28 0x1.ea6bb4a878fcap-32"
)
"""2^g, |g| <= 1/2."""
THIRD = hexes("0x1.5555555555555p-2 0x1.5555555555555p-56")
TWO_OVER_LN_2 = hexes("0x1.71547652b82fep+1 0x1.777d0ffda0d24p-55")


def _finite(nest: NestBuilder, y: Scalar) -> Scalar:
    """Replace infinities by large numbers: 0 times these is 0, so that (-1)^inf is 1."""
    large = 3.4e38 if y.dtype is float32 else 1.7e308
    return clamp(nest, y, -large, large)


def _log_at_ends(nest: NestBuilder, a: Scalar, result: Scalar) -> Scalar:
    """Select ``result``, but -inf where ``a`` is 0, and ``a`` itself where it is infinity or NaN."""
    return nest.select(a < INF, nest.select(a.eq(0.0), -INF, result), a)


def _with_sign(nest: NestBuilder, x: Scalar, y: Scalar, power: Scalar) -> Scalar:
    """Compute x^y from ``power = |x|^y``: signs of odd powers, NaN for roots of negative numbers, 1 for x=1 or y=0."""
    half = y * 0.5
    is_integer = nest.op("roundeven", y).eq(y)
    odd = is_integer & nest.op("roundeven", half).ne(half)
    result = nest.op("copysign", power, nest.select(odd, x, 1.0))
    result = nest.select((x < 0.0) & (x > -INF) & ~is_integer, NAN, result)
    return nest.select(x.eq(1.0) | y.eq(0.0), 1.0, result)


def pow_f32(nest: NestBuilder, x: Scalar, y: Scalar) -> Scalar:
    """Compute x^y of f32 in f64 lanes."""
    a = nest.op("abs", x).cast(float64)
    exponent, f = split(nest, a)
    log2 = _log_at_ends(nest, a, nest.fma(f, polynomial(nest, f, LOG2), exponent))
    z = clamp(nest, _finite(nest, y).cast(float64) * log2, -200.0, 200.0)
    shifted, n = nearest(nest, z, 1.0)
    power = polynomial(nest, z - n, EXP2_F32) * power_of_two(nest, shifted)
    return _with_sign(nest, x, y, power.cast(float32))


def _log2_of_one_plus(nest: NestBuilder, f: Scalar) -> tuple[Scalar, Scalar]:
    """Compute log2(1 + f) as a sum of two f64, for |f| <= 1/3.

    The formula is ``2/ln2 (s + s^3/3 + s^5 R(s^2))`` with ``s = f / (2 + f)``.
    """
    d = f + 2.0
    inverse = 1.0 / d
    s = f * inverse
    # The rounding error of the quotient, and of d, which is f - (d - 2).
    s_low = nest.fma(-s, f - (d - 2.0), nest.fma(-s, d, f)) * inverse
    square = s * s
    square_low = nest.fma(s + s, s_low, nest.fma(s, s, -square))
    tail = square * polynomial(nest, square, ATANH)
    third = tail + THIRD[0]
    third_low = (tail - (third - THIRD[0])) + THIRD[1]
    w = square * third
    w_low = nest.fma(square, third_low, nest.fma(square_low, third, nest.fma(square, third, -w)))
    factor = nest.const(TWO_OVER_LN_2[0], f.dtype)
    first = s * factor
    first_low = nest.fma(s_low, factor, nest.fma(s, TWO_OVER_LN_2[1], nest.fma(s, factor, -first)))
    second = first * w
    second_low = nest.fma(first, w_low, nest.fma(first_low, w, nest.fma(first, w, -second)))
    high = first + second
    return high, (second - (high - first)) + (first_low + second_low)


def pow_f64(nest: NestBuilder, x: Scalar, y: Scalar) -> Scalar:
    """Compute x^y of f64, with the logarithm as a sum of two f64."""
    a = nest.op("abs", x)
    exponent, f = split_any(nest, a)
    high, low = _log2_of_one_plus(nest, f)
    log2 = exponent + high
    log2_low = (high - (log2 - exponent)) + low
    log2 = _log_at_ends(nest, a, log2)
    finite = _finite(nest, y)
    product = finite * log2
    rest = nest.fma(finite, log2_low, nest.fma(finite, log2, -product))
    rest = nest.select(nest.op("abs", product) < 1100.0, rest, 0.0)
    z = clamp(nest, product, -1100.0, 1100.0)
    _, n = nearest(nest, z, 1.0)
    return _with_sign(nest, x, y, scale(nest, polynomial(nest, (z - n) + rest, EXP2_F64), n))
