"""Building blocks of the vector math functions: polynomials, nearest integers, powers of two, bits.

All work on f32 and f64; integers are i32 together with f32, and i64 together with f64.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.base.dtypes import DType, float32, float64, int32, int64
from graphc.base.records import dataclass
from graphc.ir.kernel.nest import NestBuilder, Scalar

INF, NAN = float("inf"), float("nan")
LONG = 12
"""Number of coefficients beyond which a polynomial is split."""


@dataclass(frozen=True)
class Format:
    """Bit layout of a float type."""

    integer: DType
    """Integer type of the same width."""
    mantissa: int
    """Stored bits of the mantissa."""
    one: int
    """Bits of 1.0."""
    two_thirds: int
    """Bits of 2/3."""
    tiny: float
    """Least positive normal number."""

    @property
    def magic(self) -> float:
        """1.5 * 2^mantissa; adding it to a small number leaves the nearest integer in the low bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def exponent_mask(self) -> int:
        """Mask of the sign and exponent bits."""
        return -(1 << self.mantissa)

    @property
    def sign_mask(self) -> int:
        """Mask of the sign bit."""
        return -(1 << (self.integer.bits - 1))


F32 = Format(int32, 23, 0x3F800000, 0x3F2AAAAB, 2.0**-126)
F64 = Format(int64, 52, 0x3FF0000000000000, 0x3FE5555555555555, 2.0**-1022)


def format_of(dtype: DType) -> Format:
    """Return the layout of f32 or f64."""
    return F32 if dtype is float32 else F64


def hexes(text: str) -> tuple[float, ...]:
    """Parse floats in hexadecimal, separated by blanks."""
    return tuple(float.fromhex(word) for word in text.split())


def polynomial(nest: NestBuilder, x: Scalar, coefficients: Sequence[float]) -> Scalar:
    """Compute ``sum coefficients[k] * x^k`` by Horner's rule, one fma per power.

    Long polynomials are split, after the first two terms, into even and odd powers, which are polynomials in x^2. That
    takes one more product, but halves the dependence chain, with the same error.
    """
    first, rest = coefficients[:-1], nest.const(coefficients[-1], x.dtype)
    if len(coefficients) > LONG:
        first, rest = coefficients[:2], _by_parity(nest, x, coefficients[2:])
    for coefficient in reversed(first):
        rest = nest.fma(x, rest, coefficient)
    return rest


def square_times(nest: NestBuilder, x: Scalar, coefficients: Sequence[float], rest: Scalar) -> Scalar:
    """Compute ``x^2 * sum coefficients[k] * x^k + rest`` in as many operations as by Horner's rule in ``x``.

    The sum is a polynomial in ``x^2`` of pairs of terms, which halves the dependence chain.
    """
    square, total = x * x, None
    for k in reversed(range(0, len(coefficients), 2)):
        pair = nest.const(coefficients[k], x.dtype)
        if k + 1 < len(coefficients):
            pair = nest.fma(x, coefficients[k + 1], pair)
        total = pair if total is None else nest.fma(square, total, pair)
    assert total is not None
    return nest.fma(square, total, rest)


def _by_parity(nest: NestBuilder, x: Scalar, coefficients: Sequence[float]) -> Scalar:
    square = x * x
    even, odd = (
        _by_parity(nest, square, half) if len(half) > LONG else polynomial(nest, square, half)
        for half in (coefficients[::2], coefficients[1::2])
    )
    return nest.fma(x, odd, even)


def clamp(nest: NestBuilder, x: Scalar, low: float, high: float) -> Scalar:
    """Limit ``x`` to ``low..high``; NaN stays NaN."""
    return nest.op("max", nest.const(low, x.dtype), nest.op("min", nest.const(high, x.dtype), x))


def magnitude(nest: NestBuilder, x: Scalar, high: float) -> Scalar:
    """Compute ``|x|``, at most ``high``; NaN stays NaN."""
    return nest.op("min", nest.const(high, x.dtype), nest.op("abs", x))


def to_bits(nest: NestBuilder, x: Scalar) -> Scalar:
    """Return the bits of a float as an integer."""
    return nest.op("bitcast", x, dtype=format_of(x.dtype).integer)


def from_bits(nest: NestBuilder, bits: Scalar) -> Scalar:
    """Return the float with these bits."""
    return nest.op("bitcast", bits, dtype=float32 if bits.dtype is int32 else float64)


def shift_left(nest: NestBuilder, bits: Scalar, count: int) -> Scalar:
    """Shift bits left by a constant count."""
    return nest.op("shl", bits, nest.const(count, bits.dtype))


def nearest(nest: NestBuilder, x: Scalar, factor: float) -> tuple[Scalar, Scalar]:
    """Round ``x * factor`` to the nearest integer; return (shifted, integer-valued float).

    The low bits of ``shifted`` are the integer. Valid while ``|x * factor| < 2^(mantissa - 1)``.
    """
    magic = format_of(x.dtype).magic
    shifted = nest.fma(x, factor, magic)
    return shifted, shifted - magic


def scale(nest: NestBuilder, x: Scalar, n: Scalar) -> Scalar:
    """Compute ``x * 2^n`` with one rounding; ``n`` is an integer-valued float."""
    return nest.op("ldexp", x, n)


def power_of_two(nest: NestBuilder, shifted: Scalar, offset: int = 0) -> Scalar:
    """Compute ``2^(n + offset)`` for the integer ``n`` in ``shifted``; valid if the result is a normal number."""
    layout = format_of(shifted.dtype)
    moved = shift_left(nest, to_bits(nest, shifted), layout.mantissa)
    return from_bits(nest, moved + (layout.one + (offset << layout.mantissa)))


def inverse_power_of_two(nest: NestBuilder, shifted: Scalar, offset: int = 0) -> Scalar:
    """Compute ``2^(offset - n)`` for the integer ``n`` in ``shifted``; 0 for results just below the normal numbers."""
    layout = format_of(shifted.dtype)
    moved = shift_left(nest, to_bits(nest, shifted), layout.mantissa)
    return from_bits(nest, (layout.one + (offset << layout.mantissa)) - moved)


def exponent_bits(bits: Scalar) -> Scalar:
    """Compute ``k << mantissa``, where ``2^-k`` scales the number with these bits into [2/3, 4/3)."""
    layout = F32 if bits.dtype is int32 else F64
    return (bits - layout.two_thirds) & layout.exponent_mask


def exponent_value(nest: NestBuilder, shift: Scalar) -> Scalar:
    """Return the k of ``exponent_bits`` as a float."""
    if shift.dtype is int32:
        return shift.cast(float32) * 2.0**-F32.mantissa
    # 2^52 + k + 1023 from its bits, as many machines cannot convert i64.
    biased = nest.op("shr_unsigned", shift + F64.one, nest.const(F64.mantissa, int64))
    return from_bits(nest, biased + 0x4330000000000000) - (2.0**52 + 1023)


def split(nest: NestBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """Return ``(k, f)`` with ``x = 2^k (1 + f)``, ``1 + f`` in [2/3, 4/3), for positive normal x; k is a float, f
    exact."""
    bits = to_bits(nest, x)
    shift = exponent_bits(bits)
    return exponent_value(nest, shift), from_bits(nest, bits - shift) - 1.0


def split_any(nest: NestBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """Compute ``split`` for positive normal and denormal x."""
    layout = format_of(x.dtype)
    up = layout.mantissa + 1
    denormal = x < layout.tiny
    exponent, f = split(nest, nest.select(denormal, x * 2.0**up, x))
    return exponent + nest.select(denormal, float(-up), nest.const(0.0, x.dtype)), f
