"""Quantization with a scale that is known while a program is compiled: numbers to integer codes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, float32, int8, int32, limits, uint8
from graphc.base.errors import ArgumentError, DTypeError
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.op import Attr, ErrorSample, Sample, ZeroSign
from graphc.ir.types import TensorType
from graphc.ops.define import define
from graphc.ops.pointwise.elementwise import ELEMENTWISE
from graphc.ops.samples import floats, plain

MAGIC = 1.5 * 2.0**23
"""f32 numbers around this one are the integers: a sum with it rounds to the nearest one, ties to even, and has the
integer in its lowest bits."""
MOST_ROUNDED = 1 << 21
"""Magnitude of integers up to which that sum is exact."""
MOST_CODES = 1 << 10
"""Number of codes up to which the quotients are proven; more are divided."""
_NORMAL = 2.0**-100, 2.0**100
"""Scales between these have no subnormal reciprocal, and no product with a code overflows."""


def _infer(
    x: TensorType, scale: float, low: float, high: float, zero: float, dtype: DType, signed_zero: bool
) -> TensorType:
    if x.dtype is not float32:
        raise DTypeError(f"quantize_linear: {x} is not f32", remedy="convert with x.to(float32)")
    if dtype not in (float32, int8, uint8):
        raise DTypeError(f"quantize_linear: {dtype.name} has no codes", remedy="pass i8, u8 or f32")
    # NOTE: `not` refuses NaN, too.
    if not 0 < scale < np.inf or low > high or np.float32(scale) != scale:
        raise ArgumentError(
            f"quantize_linear: scale {scale} with codes from {low} to {high}",
            remedy="pass a positive f32 scale and low <= high",
        )
    if dtype is not float32:
        first, last = limits(dtype)
        if not first <= low + zero <= high + zero <= last:
            raise ArgumentError(
                f"quantize_linear: codes from {low + zero:g} to {high + zero:g} exceed {dtype.name}",
                remedy=f"pass low, high and zero within {first} to {last}",
            )
    return TensorType(dtype, x.shape)


def _reference(
    x: np.ndarray, scale: float, low: float, high: float, zero: float, dtype: DType, signed_zero: bool
) -> np.ndarray:
    with np.errstate(all="ignore"):
        steps = np.rint(x / np.float32(scale))
    inside = np.where(steps > low, steps, np.float32(low))
    inside = np.where(inside < high, inside, np.float32(high))
    if dtype is float32:
        return inside if signed_zero else inside + np.float32(0)
    return (inside.astype(np.int32) + int(zero)).astype(dtype.numpy)


def reciprocal(scale: float, low: float, high: float) -> tuple[float, float] | None:
    """Return two f32 numbers whose sum is nearly ``1 / scale``, such that ``fma(x, first, x * second)``, rounded to an
    integer, is ``x / scale``, rounded to f32 and then to an integer, for all x between ``low * scale`` and
    ``high * scale``. Return None where that cannot be proven.

    Both grow with x, except by their rounding errors of less than one unit in the last place. So they can differ only
    within three units of a number whose quotient ends in one half; each of these is computed both ways.

    Source: N. Brisebarre, J.-M. Muller, S. K. Raina, "Accelerating correctly rounded floating-point division when the
    divisor is known in advance", IEEE Transactions on Computers 53(8), 2004.
    """
    if not _NORMAL[0] < scale < _NORMAL[1] or high - low > MOST_CODES:
        return None
    return _proven(scale, low, high)


@lru_cache(maxsize=4096)
def _proven(scale: float, low: float, high: float) -> tuple[float, float] | None:
    divisor = np.float32(scale)
    first = np.float32(1.0 / np.float64(divisor))
    second = np.float32(1.0 / np.float64(divisor) - np.float64(first))
    ends = np.array([end for end in (low, high) if end])
    near = np.concatenate([np.arange(low + 0.5, high), ends]) * scale
    bits = near.astype(np.float32).view(np.int32)[:, None] + np.arange(-3, 4, dtype=np.int32)
    x = np.ascontiguousarray(bits).view(np.float32)
    # Products of two f32 are exact in f64. The sum is rounded: both ends of its error are tried.
    exact = x.astype(np.float64) * np.float64(first) + (x * second).astype(np.float64)
    error = np.abs(exact) * 2.0**-51
    wanted = np.rint(x / divisor)
    sums = (np.rint((exact + e).astype(np.float32)) for e in (-error, error))
    if not all(np.array_equal(total, wanted) for total in sums):
        return None
    return float(first), float(second)


def _lower(
    c: LowerContext,
    index: tuple[Index, ...],
    x: OperandRef,
    scale: float,
    low: float,
    high: float,
    zero: float,
    dtype: DType,
    signed_zero: bool,
) -> Scalar:
    nest, value = c.nest, c.broadcast(x, index)
    with np.errstate(over="ignore"):
        ends = np.array([low, high], np.float32) * np.float32(scale)
    if np.isfinite(ends).all():
        # Limits before the quotient keep infinities out of it. They round to their own codes.
        value = _limited(nest, value, *ends)
        parts = reciprocal(scale, low, high)
        if scale != 1.0:
            value = value / scale if parts is None else nest.fma(value, parts[0], value * parts[1])
    else:
        value = _limited(nest, value / scale, low, high)
    if dtype is float32 and signed_zero:
        return nest.op("roundeven", value)
    if dtype is float32:
        # Sums have no negative zero, and neither have integers.
        is_exact = max(abs(low), abs(high)) <= MOST_ROUNDED
        return value + MAGIC - MAGIC if is_exact else nest.op("roundeven", value) + 0.0
    code = nest.op("bitcast", value + MAGIC, dtype=int32)
    return (code + int(zero) if zero else code).cast(dtype)


def _limited(nest: NestBuilder, value: Scalar, low: float, high: float) -> Scalar:
    """Limit a number; NaN becomes the lower limit."""
    least, most = (nest.const(float(end), float32) for end in (low, high))
    value = nest.select(value > least, value, least)
    return nest.select(value < most, value, most)


def _samples() -> list[Sample]:
    halves = np.arange(-600, 600, dtype=np.float32) / 2
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 3e38, -3e38, 1e-40], np.float32)
    cases: tuple[tuple[float, float, float, float, DType], ...] = (
        *((1.0, 0, 255, 0, uint8), (1.0, -128, 127, 0, int8), (0.5, -3, 252, 3, uint8), (1.0, -127, 127, 0, float32)),
        *((float(np.float32(0.0231)), -100, 155, 100, uint8), (float(np.float32(1e-3)), -118, 137, -10, int8)),
        *((2.0**124, -128, 127, 0, int8), (2.0**125, 0, 255, 0, uint8), (2.0**126, -127, 127, 0, float32)),
    )
    with np.errstate(over="ignore"):
        inputs = [np.concatenate([halves, special]) * np.float32(scale) for scale, *_ in cases]
    return [
        *(plain(x, **_attrs(*case)) for x, case in zip(inputs, cases, strict=True)),
        plain(floats((3, 5), "float32"), **_attrs(0.25, -8, 7, 0, float32)),
        plain(inputs[0], **_attrs(1.0, -127, 127, 0, float32), signed_zero=True),
    ]


def _attrs(scale: float, low: float, high: float, zero: float, dtype: DType) -> dict[str, Any]:
    return {"scale": scale, "low": low, "high": high, "zero": zero, "dtype": dtype}


_WRONG = _attrs(1.0, 0, 255, 0, uint8)
quantize_linear = define(
    "quantize_linear",
    "x / scale rounded to the nearest integer, ties to even, limited to low..high (NaN is low), plus zero. ``dtype`` "
    "f32 keeps the integers as f32, without zero.",
    "x",
    _infer,
    attrs=[
        Attr("scale", "float", "difference of two codes, an f32 number"),
        Attr("low", "float", "smallest integer before zero is added"),
        Attr("high", "float", "largest integer before zero is added"),
        Attr("zero", "float", "code of 0.0"),
        Attr("dtype", "dtype", "element type of the codes: i8, u8 or f32"),
        Attr("signed_zero", "bool", "an f32 zero may have the sign of x, because nothing depends on it", False, False),
    ],
    reference=_reference,
    lower=_lower,
    vjp=(None,),
    traits=ELEMENTWISE,
    zero_sign=ZeroSign.HIDDEN,
    samples=_samples,
    error_samples=(
        ErrorSample((TensorType(int32, (2,)),), "is not f32", _WRONG, DTypeError),
        ErrorSample((TensorType(float32, (2,)),), "i32 has no codes", _WRONG | {"dtype": int32}, DTypeError),
        ErrorSample((TensorType(float32, (2,)),), "scale -1.0", _WRONG | {"scale": -1.0}, ArgumentError),
        ErrorSample((TensorType(float32, (2,)),), "from 1 to 256 exceed u8", _WRONG | {"zero": 1.0}, ArgumentError),
    ),
)
