"""exp, expm1, logarithms, tanh and erf of f32 and f64 as expressions of primitive operations.

Coefficients: tools/codegen/minimax.py prints them all. Errors measured: docs/vector_math.md.
No function has a branch or a table, so that one vector lane costs what another does.
"""

from __future__ import annotations

from graphc.base.dtypes import DType, float32, float64
from graphc.base.records import dataclass
from graphc.codegen.schedule.expansion.steps import (
    INF,
    NAN,
    clamp,
    exponent_bits,
    exponent_value,
    format_of,
    from_bits,
    hexes,
    inverse_power_of_two,
    magnitude,
    nearest,
    polynomial,
    power_of_two,
    scale,
    split_any,
    square_times,
    to_bits,
)
from graphc.ir.kernel.nest import NestBuilder, Scalar

LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453


@dataclass(frozen=True)
class Constants:
    """Constants of one of the two types."""

    ln_2_low: float
    """ln 2 minus its nearest number of the type."""
    exp: tuple[float, ...]
    """e^r, |r| <= ln(2)/2."""
    exp_range: tuple[float, float]
    """Beyond it e^x is 0 or infinite."""
    expm1: tuple[float, ...]
    """(e^r - 1 - r) / r^2, |r| <= ln(2)/2."""
    expm1_low: float
    """Below it e^x - 1 is -1."""
    log1p: tuple[float, ...]
    """(log(1 + f) - f) / f^2, |f| <= 1/3."""
    log2_of_e: tuple[float, ...]
    """1 / ln 2 as the nearest number of the type plus the remainder."""
    log10_of_e: tuple[float, ...]
    """1 / ln 10 in the same form."""
    log10_of_2: tuple[float, ...]
    """log10(2) as a sum of two numbers, the first with so few bits that its product with an exponent is exact."""
    tanh_high: float
    """Above it tanh is 1."""
    erf: tuple[float, ...]
    """-log(erfc(a)) / a - 1, 0 < a <= erf_high."""
    erf_high: float
    """Above it erf is 1."""


CONSTANTS_F32 = Constants(
    ln_2_low=float.fromhex("-0x1.05c610p-29"),
    exp=hexes("0x1p+0 0x1p+0 0x1p-1 0x1.55549p-3 0x1.5554c8p-5 0x1.123adp-7 0x1.6d7214p-10"),
    exp_range=(-104.0, 89.0),
    expm1=hexes("0x1.fffffep-2 0x1.5554b4p-3 0x1.5556f2p-5 0x1.12256p-7 0x1.6b9ca4p-10"),
    expm1_low=-20.0,
    log1p=hexes(
        "-0x1p-1 0x1.555506p-2 -0x1.fffefcp-3 0x1.99d044p-3 -0x1.559c44p-3 0x1.1ed662p-3 -0x1.f332fap-4"
        " 0x1.1e678cp-3 -0x1.07c88cp-3"
    ),
    log2_of_e=hexes("0x1.715476p+0 0x1.4ae0cp-26"),
    log10_of_e=hexes("0x1.bcb7b2p-2 -0x1.5b235ep-27"),
    log10_of_2=hexes("0x1.344p-2 0x1.3509f8p-18"),
    tanh_high=9.02,
    erf=hexes(
        "0x1.06eba8p-3 0x1.45f3p-1 0x1.a4f8c4p-4 -0x1.39b7ccp-6 -0x1.6374cap-13 0x1.b7439cp-10 -0x1.4e27b8p-11"
        " 0x1.f2859cp-14 -0x1.3afd84p-17"
    ),
    erf_high=3.92,
)
CONSTANTS_F64 = Constants(
    ln_2_low=float.fromhex("0x1.abc9e3b39803fp-56"),
    exp=hexes(
        "0x1p+0 0x1p+0 0x1.000000000000cp-1 0x1.5555555555556p-3 0x1.555555554fd67p-5 0x1.11111111107cep-7"
        " 0x1.6c16c1863e01fp-10 0x1.a01a01a83d9f7p-13 0x1.a01995006382cp-16 0x1.71de0d8c4fe77p-19"
        " 0x1.28b1bcbd00c75p-22 0x1.af36b32f58dedp-26"
    ),
    exp_range=(-746.0, 710.0),
    expm1=hexes(
        "0x1p-1 0x1.5555555555559p-3 0x1.5555555555558p-5 0x1.111111110f713p-7 0x1.6c16c16c174cp-10"
        " 0x1.a01a01af9e95p-13 0x1.a01a0199bf72ep-16 0x1.71ddf922b006cp-19 0x1.27e502a3e175dp-22"
        " 0x1.af5d468d3da38p-26 0x1.1f2a2e628f1a5p-29"
    ),
    expm1_low=-40.0,
    log1p=hexes(
        "-0x1.ffffffffffff8p-2 0x1.5555555555539p-2 -0x1.00000000014f1p-2 0x1.999999999f9d5p-3"
        " -0x1.5555555359e8ap-3 0x1.24924920ec32dp-3 -0x1.000000af82255p-3 0x1.c71c73f8d09cp-4"
        " -0x1.999956f30af7ap-4 0x1.745cb770d0046p-4 -0x1.555ceb400b5e3p-4 0x1.3b1dab6274d75p-4"
        " -0x1.240888681448dp-4 0x1.10694348ac076p-4 -0x1.061b8f560ddbep-4 0x1.efcbd2387a826p-5"
        " -0x1.73cf28ce21e0dp-5 0x1.55c5001fd52b1p-5 -0x1.63d90baab6735p-4 0x1.5c7cc680a7372p-4"
    ),
    log2_of_e=hexes("0x1.71547652b82fep+0 0x1.777d0ffda0d24p-56"),
    log10_of_e=hexes("0x1.bcb7b1526e50ep-2 0x1.95355baaafad3p-57"),
    log10_of_2=hexes("0x1.34413509f6p-2 0x1.9fef311f12b36p-42"),
    tanh_high=19.1,
    erf=hexes(
        "0x1.06eba8214db68p-3 0x1.45f306dc9c8cfp-1 0x1.a4f4e2a1aa724p-4 -0x1.39668590bfcc7p-6"
        " -0x1.b6b6a0d6112b1p-13 0x1.bca6912412236p-10 -0x1.356635bc854e5p-11 0x1.b298abb4cd96cp-16"
        " 0x1.0e343c3869c87p-14 -0x1.f03b26fa43bfp-16 0x1.a9c71e810249p-19 0x1.a42389581be81p-19"
        " -0x1.112246a95c158p-19 0x1.3198245c82c02p-21 -0x1.78da58fb97e23p-27 -0x1.1ba800ddfa309p-24"
        " 0x1.29f9e2151c115p-25 -0x1.731f7c6313e9dp-27 0x1.4538f460d98a3p-29 -0x1.9e82e37c4eb4dp-32"
        " 0x1.7b59058dfaa8p-35 -0x1.dabeec52b030fp-39 0x1.6ca7be0528125p-43 -0x1.039d604eb2b5p-48"
    ),
    erf_high=5.95,
)


def constants_of(dtype: DType) -> Constants:
    """Return the constants for f32 or f64."""
    return {float32: CONSTANTS_F32, float64: CONSTANTS_F64}[dtype]


def without_ln_2(nest: NestBuilder, x: Scalar, n: Scalar) -> Scalar:
    """Compute ``x - n ln 2``; the first difference is exact, as all its bits are above the lowest bit of ln 2."""
    return nest.fma(n, -constants_of(x.dtype).ln_2_low, nest.fma(n, -LN_2, x))


def exp(nest: NestBuilder, x: Scalar) -> Scalar:
    """Compute e^x as ``2^n e^r`` with ``x = n ln 2 + r`` and a polynomial of degree 6 (f32) or 11 (f64) in r."""
    constants = constants_of(x.dtype)
    x = clamp(nest, x, *constants.exp_range)
    _, n = nearest(nest, x, LOG2_E)
    return scale(nest, polynomial(nest, without_ln_2(nest, x, n), constants.exp), n)


def expm1(nest: NestBuilder, x: Scalar) -> Scalar:
    """Compute e^x - 1 as ``2^n (q + (1 - 2^-n))``, with ``q = e^r - 1`` from a polynomial without constant term."""
    constants = constants_of(x.dtype)
    clamped = clamp(nest, x, constants.expm1_low, constants.exp_range[1])
    shifted, n = nearest(nest, clamped, LOG2_E)
    r = without_ln_2(nest, clamped, n)
    q = nest.fma(r * r, polynomial(nest, r, constants.expm1), r)
    # 2^(1-n) is 0 for the largest n, where 2^-n would leave the range of normal numbers.
    rest = nest.fma(inverse_power_of_two(nest, shifted, 1), -0.5, 1.0)
    return nest.op("copysign", scale(nest, q + rest, n), x)


def _log(nest: NestBuilder, f: Scalar, exponent: Scalar) -> Scalar:
    """Compute ``log(1 + f) + exponent * ln 2`` for |f| <= 1/3."""
    series = nest.fma(f * f, polynomial(nest, f, constants_of(f.dtype).log1p), f)
    return nest.fma(exponent, LN_2, series)


def log(nest: NestBuilder, x: Scalar) -> Scalar:
    """Compute the natural logarithm as ``k ln 2 + log(1 + f)``, with ``x = 2^k (1 + f)`` taken from the bits.

    The polynomial in f has degree 10 (f32) or 21 (f64).
    """
    exponent, f = split_any(nest, x)
    result = nest.select(x < INF, _log(nest, f, exponent), x)
    return nest.select(x > 0.0, result, nest.select(x.eq(0.0), -INF, nest.const(NAN, x.dtype)))


def _log_to_base(nest: NestBuilder, x: Scalar, of_2: tuple[float, ...], of_e: tuple[float, ...]) -> Scalar:
    """Compute the logarithm of x to the base of ``of_2`` (log 2) and ``of_e`` (log e).

    It is ``k log 2 + f log e + (log(1 + f) - f) log e``, with the larger part of the sum kept exactly.
    """
    k, f = split_any(nest, x)
    series = f * f * polynomial(nest, f, constants_of(x.dtype).log1p)
    first = f * of_e[0]
    rest = nest.fma(series, of_e[0], nest.fma(f, of_e[1], nest.fma(f, of_e[0], -first)))
    of_exponent = k
    if of_2 != (1.0, 0.0):
        of_exponent, rest = k * of_2[0], nest.fma(k, of_2[1], rest)
    high = of_exponent + first
    result = high + ((first - (high - of_exponent)) + rest)
    result = nest.select(x < INF, result, x)
    return nest.select(x > 0.0, result, nest.select(x.eq(0.0), -INF, nest.const(NAN, x.dtype)))


def log2(nest: NestBuilder, x: Scalar) -> Scalar:
    """Compute the logarithm to base 2, exactly for powers of two."""
    return _log_to_base(nest, x, (1.0, 0.0), constants_of(x.dtype).log2_of_e)


def log10(nest: NestBuilder, x: Scalar) -> Scalar:
    """Compute the logarithm to base 10."""
    constants = constants_of(x.dtype)
    return _log_to_base(nest, x, constants.log10_of_2, constants.log10_of_e)


def exp2(nest: NestBuilder, x: Scalar) -> Scalar:
    """Compute 2^x as ``2^n e^(r ln 2)`` with ``x = n + r``, exactly for integers x."""
    low, high = constants_of(x.dtype).exp_range
    x = clamp(nest, x, low * LOG2_E, high * LOG2_E)
    _, n = nearest(nest, x, 1.0)
    return scale(nest, polynomial(nest, (x - n) * LN_2, constants_of(x.dtype).exp), n)


def log1p(nest: NestBuilder, x: Scalar) -> Scalar:
    """Compute log(1 + x): the exponent k comes from the rounded 1 + x, ``f = x 2^-k + (2^-k - 1)`` from x itself."""
    layout = format_of(x.dtype)
    shift = exponent_bits(to_bits(nest, x + 1.0))
    # x 2^-k by bits: k is 0 wherever x may be denormal or 0. 4 * 2^-k keeps the largest k in range.
    moved = from_bits(nest, to_bits(nest, x) - shift)
    four = from_bits(nest, (layout.one + (2 << layout.mantissa)) - shift)
    f = moved + nest.fma(four, 0.25, -1.0)
    series = _log(nest, f, exponent_value(nest, shift))
    result = nest.select(x < INF, nest.op("copysign", series, x), x)
    return nest.select(x > -1.0, result, nest.select(x.eq(-1.0), -INF, nest.const(NAN, x.dtype)))


def _one_minus_exp(nest: NestBuilder, shifted: Scalar, r: Scalar, double: bool, offset: int) -> Scalar:
    """Compute ``2^offset (1 - 2^n e^-r)``, or with ``e^-2r`` if ``double``; n is the integer in ``shifted``, n <= 0."""
    factor = 2.0 if double else 1.0
    coefficients = [-c * factor**2 * (-factor) ** k for k, c in enumerate(constants_of(r.dtype).expm1)]
    u = square_times(nest, r, coefficients, r + r if double else r)
    power = power_of_two(nest, shifted, offset)
    return nest.fma(power, u, 2.0**offset - power)


def tanh(nest: NestBuilder, x: Scalar) -> Scalar:
    """Compute tanh as ``h / (1 - h)``, ``h = (1 - e^-2|x|) / 2``, in the form ``h + h (h / (1 - h))`` without
    cancellation."""
    a = magnitude(nest, x, constants_of(x.dtype).tanh_high)
    shifted, n = nearest(nest, a, -2 * LOG2_E)
    h = _one_minus_exp(nest, shifted, nest.fma(n, LN_2 / 2, a), double=True, offset=-1)
    return nest.op("copysign", nest.fma(h, h / (1.0 - h), h), x)


def erf(nest: NestBuilder, x: Scalar) -> Scalar:
    """Compute erf as ``1 - e^-y``; ``y = -log(erfc|x|)`` is |x| times a polynomial of degree 8 (f32) or 23 (f64)."""
    constants = constants_of(x.dtype)
    a = magnitude(nest, x, constants.erf_high)
    y = nest.fma(a, polynomial(nest, a, constants.erf), a)
    shifted, n = nearest(nest, y, -LOG2_E)
    return nest.op("copysign", _one_minus_exp(nest, shifted, nest.fma(n, LN_2, y), double=False, offset=0), x)
