"""Rounding of real numbers to element types of fewer bits, by arithmetic on the bits of f32 and f64."""

from __future__ import annotations

import math
from typing import NamedTuple

from graphc.base.dtypes import float32, float64, int32, int64
from graphc.interop.onnx.elements import Element
from graphc.ops import bits
from graphc.ops import elementwise as ew
from graphc.ops import math as mathematics
from graphc.ops.state import straight_through
from graphc.tensors.tensor import Tensor


class Format(NamedTuple):
    """What a type of real numbers can hold."""

    mantissa: int
    """Bits behind the leading one."""
    smallest: int
    """The exponent of the smallest normal number."""
    largest: float
    beyond: float
    """What numbers beyond the largest become: an infinity, or NaN."""
    saturates: bool
    """Whether they become the largest one instead, where a cast does not say otherwise."""
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
"""By the names of element types."""
_ALWAYS = frozenset({"FLOAT4E2M1"})
"""Saturates whatever the cast says."""
_WHOLE = frozenset({"FLOAT8E8M0"})


def rounds(element: Element) -> bool:
    """Whether tensors hold more digits than this element type has."""
    return element.name in FORMATS or element.name in _WHOLE


def rounded(x: Tensor, element: Element, saturate: bool = True, mode: str = "up") -> Tensor:
    """Real numbers f32 or f64 as those of the element type that are nearest, the even one at ties, in f32. ``saturate``
    is of types of 8 bits, ``mode`` (up, down, nearest) of FLOAT8E8M0. Gradients pass as they are."""
    value = _power(x, saturate, mode) if element.name in _WHOLE else _limited(x, element, saturate)
    return straight_through(x.to(value.dtype), value).to(float32)


def _limited(x: Tensor, element: Element, saturate: bool) -> Tensor:
    format = FORMATS[element.name]
    found = _nearest(x, format)
    if element.name == "BFLOAT16" and x.dtype is float32:
        return found  # the carry into the exponent has made the infinity
    full = format.saturates and (saturate or element.name in _ALWAYS)
    beyond = ew.abs(found) > format.largest
    limit = format.largest if full else format.beyond
    found = ew.where(beyond, ew.where(found < 0, -limit, limit), found)
    if not format.has_nan:
        return ew.where(found.ne(found), 0.0, found)
    return found if format.has_negative_zero else ew.where(found.eq(0), 0.0, found)


def _nearest(x: Tensor, format: Format) -> Tensor:
    """Rounded to so many bits, whatever the largest number is."""
    if x.dtype is float32 and format.smallest < -100:
        return _upper_half(x)
    integer, mantissa, bias = (int32, 23, 127) if x.dtype is float32 else (int64, 52, 1023)
    whole = bits.bitcast(x, dtype=integer) & (((1 << (31 if integer is int32 else 63)) - 1) ^ ((1 << mantissa) - 1))
    exponent = ew.maximum(whole, (format.smallest + bias) << mantissa)
    step = bits.bitcast(exponent - (format.mantissa << mantissa), dtype=x.dtype)
    return mathematics.round(x / step) * step


def _upper_half(x: Tensor) -> Tensor:
    """f32 rounded to bf16, whose bits are the upper half."""
    word = bits.bitcast(x, dtype=int32)
    even = word + (((word >> 16) & 1) + 0x7FFF)
    return ew.where(x.ne(x), x, bits.bitcast(even & -0x10000, dtype=float32))


def _power(x: Tensor, saturate: bool, mode: str) -> Tensor:
    """Powers of two from 2^-127 to 2^127."""
    x = x.to(float64)
    word = bits.bitcast(x, dtype=int64)
    rest = word & ((1 << 52) - 1)
    goes_up = {"up": rest.ne(0), "down": rest < 0, "nearest": rest >= (1 << 51)}[mode]
    found = bits.bitcast((word - rest) + goes_up.to(int64) * (1 << 52), dtype=float64)
    least, largest = 2.0**-127, 2.0**127
    if saturate:
        limited = ew.where(found < least, least, ew.where(found > largest, largest, found))
    else:
        limited = ew.where(ew.logical_or(found < least, found > largest), math.nan, found)
    return ew.where(x.ne(x), x, limited)
