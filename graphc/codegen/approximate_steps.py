"""Steps that the vector math functions are made of: polynomials, nearest integers, powers of two, bits.

``f32`` and ``f64`` below mean the two element types; integers travel as i32 beside f32 and as i64 beside f64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphc.dtypes import DType, float32, float64, int32, int64
from graphc.ir.nest import NestBuilder, Scalar


@dataclass(frozen=True)
class Format:
    """What bit tricks need to know about a float type."""

    integer: DType
    """Integer type of the same width."""
    mantissa: int
    """Stored bits of the mantissa."""
    one: int
    """Bits of 1.0."""
    magic: float
    """1.5 * 2^mantissa: added to a small number it leaves the nearest integer in the low bits."""
    magic_bits: int


F32 = Format(int32, 23, 0x3F800000, float(3 << 22), 0x4B400000)
F64 = Format(int64, 52, 0x3FF0000000000000, float(3 << 51), 0x4338000000000000)


def format_of(dtype: DType) -> Format:
    """The layout of f32 or f64."""
    return {float32: F32, float64: F64}[dtype]


def hexes(text: str) -> tuple[float, ...]:
    """Floats written in hexadecimal, separated by blanks."""
    return tuple(float.fromhex(word) for word in text.split())


def polynomial(nest: NestBuilder, x: Scalar, coefficients: Sequence[float]) -> Scalar:
    """``sum coefficients[k] * x^k`` by Horner's rule, one fma per power."""
    *rest, last = coefficients
    result = nest.const(last, x.dtype)
    for coefficient in reversed(rest):
        result = nest.fma(x, result, coefficient)
    return result


def to_bits(nest: NestBuilder, x: Scalar) -> Scalar:
    """The bits of a float as an integer."""
    return nest.op("bitcast", x, dtype=format_of(x.dtype).integer)


def from_bits(nest: NestBuilder, bits: Scalar) -> Scalar:
    """The float with these bits."""
    return nest.op("bitcast", bits, dtype=float32 if bits.dtype is int32 else float64)


def nearest(nest: NestBuilder, x: Scalar, factor: float) -> tuple[Scalar, Scalar]:
    """``x * factor`` rounded to the nearest integer, as (shifted, integer-valued float).

    The low bits of ``shifted`` are the integer. Right while ``|x * factor| < 2^(mantissa - 2)``.
    """
    magic = format_of(x.dtype).magic
    shifted = nest.fma(x, nest.const(factor, x.dtype), magic)
    return shifted, shifted - magic


def scale(nest: NestBuilder, x: Scalar, n: Scalar) -> Scalar:
    """``x * 2^n`` with one rounding; ``n`` is an integer-valued float."""
    return nest.op("ldexp", x, n)


def power_of_two(nest: NestBuilder, shifted: Scalar, offset: int = 0) -> Scalar:
    """``2^(n + offset)`` for the integer ``n`` in ``shifted``; right where that is a normal number."""
    layout = format_of(shifted.dtype)
    moved = nest.op("shl", to_bits(nest, shifted), nest.const(layout.mantissa, layout.integer))
    return from_bits(nest, moved + (layout.one + (offset << layout.mantissa)))


def inverse_power_of_two(nest: NestBuilder, shifted: Scalar, offset: int = 0) -> Scalar:
    """``2^(offset - n)`` for the integer ``n`` in ``shifted``; 0 where that is just below the normal ones."""
    layout = format_of(shifted.dtype)
    moved = nest.op("shl", to_bits(nest, shifted), nest.const(layout.mantissa, layout.integer))
    return from_bits(nest, (layout.one + (offset << layout.mantissa)) - moved)
