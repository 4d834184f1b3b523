"""Rounding of real numbers to narrower element types, by arithmetic on the bits of f32 and f64."""

from __future__ import annotations

import math

from graphc.base.dtypes import float32, float64, int32, int64
from graphc.base.records import NamedTuple
from graphc.interop.onnx.elements import Element
from graphc.ops.effects.state import straight_through
from graphc.ops.pointwise import bits
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.tensors.tensor import Tensor


class Format(NamedTuple):
    """Range and precision of a floating-point type."""

    mantissa: int
    """Bits after the leading one."""
    smallest: int
    """Exponent of the smallest normal number."""
    largest: float
    beyond: float
    """Result for numbers beyond the largest: infinity or NaN."""
    saturates: bool
    """Whether such numbers become the largest one instead, unless the cast says otherwise."""
    has_negative_zero: bool = True
    has_nan: bool = True


_INF, _NAN = math.inf, math.nan
FORMATS = {
    "FLOAT16": Format(10, -14, 65504.0, _INF, False),
    "BFLOAT16": Format(7, -126, (2 - 2.0**-7) * 2.0**127, _INF, False),
    "FLOAT8E4M3FN": Format(3, -6, 448.0, _NAN, True),
    "FLOAT8E4M3FNUZ": Format(3, -7, 240.0, _NAN, True, False),
    "FLOAT8E5M2": Format(2, -14, 57344.0, _INF, True),
    "FLOAT8E5M2FNUZ": Format(2, -15, 57344.0, _NAN, True, False),
    "FLOAT4E2M1": Format(1, 0, 6.0, _NAN, True, has_nan=False),
}
"""Formats by the names of element types."""
_ALWAYS = frozenset({"FLOAT4E2M1"})
"""Types that saturate whatever the cast says."""
_WHOLE = frozenset({"FLOAT8E8M0"})


def rounds(element: Element) -> bool:
    """Check whether the carrier has more precision than this element type."""
    return element.name in FORMATS or element.name in _WHOLE


def rounded(x: Tensor, element: Element, saturate: bool = True, mode: str = "up") -> Tensor:
    """Round f32 or f64 numbers to the nearest of the element type, ties to even, and return f32.

    ``saturate`` applies to types of 8 bits, ``mode`` (up, down, nearest) to FLOAT8E8M0. The gradient is
    straight-through.
    """
    value = _power(x, saturate, mode) if element.name in _WHOLE else _limited(x, element, saturate)
    return straight_through(x.to(value.dtype), value).to(float32)


def _limited(x: Tensor, element: Element, saturate: bool) -> Tensor:
    format = FORMATS[element.name]
    rounded = _nearest(x, format)
    if element.name == "BFLOAT16" and x.dtype is float32:
        return rounded  # the carry into the exponent has made the infinity
    full = format.saturates and (saturate or element.name in _ALWAYS)
    beyond = ew.abs(rounded) > format.largest
    limit = format.largest if full else format.beyond
    rounded = ew.where(beyond, ew.where(rounded < 0, -limit, limit), rounded)
    if not format.has_nan:
        return ew.where(rounded.ne(rounded), 0.0, rounded)
    return rounded if format.has_negative_zero else ew.where(rounded.eq(0), 0.0, rounded)


def _nearest(x: Tensor, format: Format) -> Tensor:
    """Round to the mantissa of the format, without regard to its largest number."""
    if x.dtype is float32 and format.smallest < -100:
        return _upper_half(x)
    integer, mantissa, bias = (int32, 23, 127) if x.dtype is float32 else (int64, 52, 1023)
    exponent_bits = bits.bitcast(x, dtype=integer) & (
        ((1 << (31 if integer is int32 else 63)) - 1) ^ ((1 << mantissa) - 1)
    )
    exponent = ew.maximum(exponent_bits, (format.smallest + bias) << mantissa)
    step = bits.bitcast(exponent - (format.mantissa << mantissa), dtype=x.dtype)
    return mathematics.round(x / step) * step


def _upper_half(x: Tensor) -> Tensor:
    """Round f32 to bf16, the upper half of the bits of an f32."""
    word = bits.bitcast(x, dtype=int32)
    even = word + (((word >> 16) & 1) + 0x7FFF)
    return ew.where(x.ne(x), x, bits.bitcast(even & -0x10000, dtype=float32))


def _power(x: Tensor, saturate: bool, mode: str) -> Tensor:
    """Round to powers of two from 2^-127 to 2^127."""
    x = x.to(float64)
    word = bits.bitcast(x, dtype=int64)
    rest = word & ((1 << 52) - 1)
    goes_up = {"up": rest.ne(0), "down": rest < 0, "nearest": rest >= (1 << 51)}[mode]
    power = bits.bitcast((word - rest) + goes_up.to(int64) * (1 << 52), dtype=float64)
    least, largest = 2.0**-127, 2.0**127
    if saturate:
        limited = ew.where(power < least, least, ew.where(power > largest, largest, power))
    else:
        limited = ew.where(ew.logical_or(power < least, power > largest), math.nan, power)
    return ew.where(x.ne(x), x, limited)
