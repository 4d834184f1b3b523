"""exp, expm1, log, log1p, tanh and erf of f32 as expressions of primitive operations.

Errors are the largest found over all inputs (docs/vector_math.md). Coefficients: tools/minimax.py prints them all.
No function has a branch or a table, so that one vector lane costs what another does.
"""

from __future__ import annotations

from graphc.codegen.approximate_steps import (
    F32,
    from_bits,
    hexes,
    inverse_power_of_two,
    nearest,
    polynomial,
    power_of_two,
    scale,
    to_bits,
)
from graphc.ir.nest import NestBuilder, Scalar

LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453
# ln 2 in two parts: the first has 11 trailing zero bits, so that its product with an exponent is exact.
LN_2_HIGH, LN_2_LOW = hexes("0x1.62e4p-1 0x1.7f7d1cp-20")
INF, NAN = float("inf"), float("nan")

EXP = hexes("0x1p+0 0x1p+0 0x1p-1 0x1.555490p-3 0x1.5554c8p-5 0x1.123ad0p-7 0x1.6d7214p-10")
# (e^r - 1 - r) / r^2, |r| <= ln(2)/2
EXPM1 = hexes("0x1.fffffep-2 0x1.5554b4p-3 0x1.5556f2p-5 0x1.122560p-7 0x1.6b9ca4p-10")
# (log(1 + f) - f) / f^2, |f| <= 1/3
LOG1P = hexes(
    "-0x1p-1 0x1.555506p-2 -0x1.fffefcp-3 0x1.99d044p-3 -0x1.559c46p-3 0x1.1ed662p-3 -0x1.f332a6p-4 0x1.1e678cp-3"
    " -0x1.07c964p-3"
)
# -log(erfc(a)) / a - 1, 0 < a <= 3.92
ERF = hexes(
    "0x1.06eba8p-3 0x1.45f300p-1 0x1.a4f8c4p-4 -0x1.39b7cep-6 -0x1.636f56p-13 0x1.b7423cp-10 -0x1.4e2522p-11"
    " 0x1.f27c7ap-14 -0x1.3af154p-17"
)


def exp_f32(nest: NestBuilder, x: Scalar) -> Scalar:
    """e^x: ``2^n e^r`` with ``x = n ln 2 + r``, a polynomial of degree 6 (Remez) in r. 0.87 ULP."""
    x = nest.op("max", nest.const(-104.0, x.dtype), nest.op("min", nest.const(89.0, x.dtype), x))
    _, n = nearest(nest, x, LOG2_E)
    r = nest.fma(n, -LN_2_LOW, nest.fma(n, -LN_2_HIGH, x))
    return scale(nest, polynomial(nest, r, EXP), n)


def expm1_f32(nest: NestBuilder, x: Scalar) -> Scalar:
    """e^x - 1: ``2^n (q + (1 - 2^-n))`` with ``q = e^r - 1`` from a polynomial of degree 6 without constant (Remez)."""
    clamped = nest.op("max", nest.const(-20.0, x.dtype), nest.op("min", nest.const(89.0, x.dtype), x))
    shifted, n = nearest(nest, clamped, LOG2_E)
    r = nest.fma(n, -LN_2_LOW, nest.fma(n, -LN_2_HIGH, clamped))
    q = nest.fma(r * r, polynomial(nest, r, EXPM1), r)
    # 2^(1-n) is 0 for n = 128, where 2^-n would leave the range of normal numbers.
    rest = nest.fma(inverse_power_of_two(nest, shifted, 1), -0.5, 1.0)
    return nest.op("copysign", scale(nest, q + rest, n), x)


def _log1p_small(nest: NestBuilder, f: Scalar, exponent: Scalar) -> Scalar:
    """``log(1 + f) + exponent * ln 2`` for |f| <= 1/3."""
    series = nest.fma(f * f, polynomial(nest, f, LOG1P), f)
    return nest.fma(exponent, LN_2, series)


def _exponent_bits(nest: NestBuilder, bits: Scalar) -> Scalar:
    """``k << 23`` where ``2^-k`` brings the number with these bits into [2/3, 4/3)."""
    return (bits - 0x3F2AAAAB) & -(1 << F32.mantissa)


def log_f32(nest: NestBuilder, x: Scalar) -> Scalar:
    """Natural logarithm: ``k ln 2 + log(1 + f)``, ``x = 2^k (1 + f)`` by bits, degree 10 (Remez). 0.92 ULP."""
    denormal = x < 2.0**-126
    normal = nest.select(denormal, x * 2.0**23, x)
    bits = to_bits(nest, normal)
    shift = _exponent_bits(nest, bits)
    f = from_bits(nest, bits - shift) - 1.0
    exponent = nest.fma(shift.cast(x.dtype), 2.0**-23, nest.select(denormal, -23.0, nest.const(0.0, x.dtype)))
    result = nest.select(x < INF, _log1p_small(nest, f, exponent), x)
    return nest.select(x > 0.0, result, nest.select(x.eq(0.0), -INF, nest.const(NAN, x.dtype)))


def log1p_f32(nest: NestBuilder, x: Scalar) -> Scalar:
    """log(1 + x): the exponent k comes from the rounded 1 + x, ``f = x 2^-k + (2^-k - 1)`` from x itself."""
    shift = _exponent_bits(nest, to_bits(nest, x + 1.0))
    # x 2^-k by bits: k is 0 wherever x may be denormal or 0. 4 * 2^-k keeps k = 128 in range.
    moved = from_bits(nest, to_bits(nest, x) - shift)
    four = from_bits(nest, 0x40800000 - shift)
    f = moved + nest.fma(four, 0.25, -1.0)
    series = _log1p_small(nest, f, shift.cast(x.dtype) * 2.0**-23)
    result = nest.select(x < INF, nest.op("copysign", series, x), x)
    return nest.select(x > -1.0, result, nest.select(x.eq(-1.0), -INF, nest.const(NAN, x.dtype)))


def _one_minus_exp(nest: NestBuilder, shifted: Scalar, r: Scalar, double: bool, offset: int) -> Scalar:
    """``2^offset (1 - 2^n e^-r)``, or with ``e^-2r``; n is the integer in ``shifted`` and not positive."""
    factor = 2.0 if double else 1.0
    coefficients = [-c * factor**2 * (-factor) ** k for k, c in enumerate(EXPM1)]
    u = nest.fma(r * r, polynomial(nest, r, coefficients), r + r if double else r)
    power = power_of_two(nest, shifted, offset)
    return nest.fma(power, u, 2.0**offset - power)


def tanh_f32(nest: NestBuilder, x: Scalar) -> Scalar:
    """``h / (1 - h)`` with ``h = (1 - e^-2|x|) / 2``, summed as ``h + h (h / (1 - h))``: nothing cancels. 2.0 ULP."""
    a = nest.op("min", nest.const(9.02, x.dtype), nest.op("abs", x))
    shifted, n = nearest(nest, a, -2 * LOG2_E)
    h = _one_minus_exp(nest, shifted, nest.fma(n, LN_2 / 2, a), double=True, offset=-1)
    return nest.op("copysign", nest.fma(h, h / (1.0 - h), h), x)


def erf_f32(nest: NestBuilder, x: Scalar) -> Scalar:
    """``1 - e^-y`` with ``y = -log(erfc|x|)``, which is |x| times a polynomial of degree 8 (Remez). 1.8 ULP."""
    a = nest.op("min", nest.const(3.92, x.dtype), nest.op("abs", x))
    y = nest.fma(a, polynomial(nest, a, ERF), a)
    shifted, n = nearest(nest, y, -LOG2_E)
    return nest.op("copysign", _one_minus_exp(nest, shifted, nest.fma(n, LN_2, y), double=False, offset=0), x)
