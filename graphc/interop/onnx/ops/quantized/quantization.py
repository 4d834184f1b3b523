"""Rules of ONNX operators that quantize real numbers and dequantize integer codes."""

from __future__ import annotations

from typing import Any

from graphc.base.dtypes import DType, float32, int32
from graphc.base.sizes.size import is_size
from graphc.interop.onnx.elements import FLOAT, UINT8, Element, element_of_code
from graphc.interop.onnx.registry import MICROSOFT, op
from graphc.interop.onnx.rounding import rounded, rounds
from graphc.interop.onnx.values import Codes, Steps, Value
from graphc.nn.functional.quantized import rounded_codes
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise.quantization import quantize_linear as to_codes
from graphc.tensors import functions
from graphc.tensors.tensor import Tensor

_LARGEST_STEP = 2.0**120
"""Bound of scales whose products with codes are finite."""
RANGES: dict[str, tuple[int, int]] = {
    **{f"UINT{bits}": (0, (1 << bits) - 1) for bits in (2, 4, 8, 16)},
    **{f"INT{bits}": (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) for bits in (2, 4, 8, 16, 32)},
}
"""The smallest and the largest code of element types."""


def real(x: Value) -> Tensor:
    """Convert to f32. f64 stays f64."""
    return x.tensor if x.tensor.dtype.is_floating_point else x.tensor.to(float32)


def along(parameter: Tensor, x: Tensor, axis: int, block_size: int) -> Tensor:
    """Reshape scales or zero points to broadcast to ``x``: one for all, one per index of an axis, or one per block."""
    if parameter.ndim == 0 or (parameter.ndim == 1 and parameter.shape[0] == 1 and not block_size):
        return parameter.reshape(())
    at = axis % x.ndim
    if not block_size:
        return parameter.reshape(-1, *(1,) * (x.ndim - 1 - at)) if parameter.ndim == 1 else parameter
    spread = functions.repeat_interleave(parameter, block_size, at)
    return spread.narrow(at, 0, x.shape[at]) if _differ(spread.shape[at], x.shape[at]) else spread


def _differ(a: Any, b: Any) -> bool:
    return is_size(a) or is_size(b) or a != b


def quantized(x: Tensor, scale: Tensor, zero: Tensor | None, element: Element, saturate: bool = True) -> Tensor:
    """Return ``x / scale + zero`` rounded to the nearest code, ties to even, within the element type."""
    return stepped(x / scale, zero, element, saturate)


def stepped(ratio: Tensor, zero: Tensor | None, element: Element, saturate: bool = True) -> Tensor:
    """Round ratios to the nearest integer, add the zero point, and clamp to the element type."""
    if rounds(element):
        return rounded(ratio if zero is None else ratio + zero.to(ratio.dtype), element, saturate)
    low, high = RANGES[element.name]
    return rounded_codes(ratio, zero, low, high).to(element.carrier)


def known_steps(x: Tensor, scale: Value | float, zero: Value | None, element: Element) -> Steps | None:
    """Return the quantization of f32 numbers to bytes with a known scale and zero point; None for others."""
    if element.name not in ("INT8", "UINT8") or x.dtype is not float32:
        return None
    step, point = _known_number(scale), _point(zero)
    if step is None or point is None or not 0 < step < float("inf"):
        return None
    low, high = RANGES[element.name]
    return Steps(x, step, low - int(point), high - int(point), int(point))


def _known_number(x: Value | float) -> float | None:
    if not isinstance(x, Value):
        return x
    return float(x.number) if x.is_known and x.array.size == 1 else None


def _point(zero: Value | None) -> float | None:
    """Return the zero point: 0 for none; None where it is unknown."""
    return 0 if zero is None else _known_number(zero)


def _rounded(steps: Steps, zero: int, dtype: DType) -> Tensor:
    return to_codes(steps.source, scale=steps.scale, low=steps.low, high=steps.high, zero=zero, dtype=dtype)


def codes_of(
    x: Tensor,
    scale: Value | float,
    scale_of_x: Tensor | None,
    zero: Value | None,
    zero_of_x: Tensor | None,
    element: Element,
) -> Value:
    """Quantize numbers to codes. ``scale_of_x`` (None for 1) and ``zero_of_x`` broadcast to x."""
    steps = known_steps(x, scale, zero, element)
    if steps is None or element.carrier is None:
        return Value(element, stepped(x if scale_of_x is None else x / scale_of_x, zero_of_x, element))
    result = Value(element, _rounded(steps, steps.zero, element.carrier))
    result.steps = steps
    return result


def integers_of(x: Value, zero: Value | None) -> Tensor | None:
    """Return ``x - zero`` in f32 for codes that were just quantized, without a conversion; None for others."""
    steps = x.steps
    return _rounded(steps, 0, float32) if steps is not None and steps.zero == _point(zero) else None


def numbers_of(x: Value, scale: Tensor, zero: Value | None, zero_of_x: Tensor | None) -> Tensor:
    """Return ``(x - zero) * scale``; of codes that were just quantized from their integers, without a conversion."""
    integers = integers_of(x, zero)
    return dequantized(x.tensor, scale, zero_of_x) if integers is None else integers.to(scale.dtype) * scale


def numbers_of_codes(codes: Codes) -> Value:
    """Return the numbers of codes with one scale."""
    zero = codes.zero
    scalar = None if zero is None else zero.tensor.reshape(())
    result = Value(FLOAT, numbers_of(codes.codes, codes.scale.reshape(()), zero, scalar))
    result.codes = codes
    return result


def dequantized(x: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
    """Return ``(x - zero) * scale``."""
    if zero is not None and not x.dtype.is_floating_point:
        x = x.to(int32) - zero.to(int32)
    elif zero is not None:
        x = x - zero
    return x.to(scale.dtype) * scale


@op("QuantizeLinear", since=10, values=True)
def quantize_linear(
    x: Value,
    y_scale: Value,
    y_zero_point: Value | None = None,
    *,
    axis: int = 1,
    saturate: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
) -> Value:
    element = UINT8
    if y_zero_point is not None or output_dtype:
        element = y_zero_point.element if y_zero_point is not None else element_of_code(output_dtype)
    data = real(x)
    scale = along(real(y_scale).to(data.dtype), data, axis, block_size)
    zero = None if y_zero_point is None else along(y_zero_point.tensor, data, axis, block_size)
    codes = x.codes
    if codes is not None and codes.codes.element is element and codes.step is not None:
        point = _point(codes.zero)
        same = codes.step == _known_number(y_scale) and point is not None and point == _point(y_zero_point)
        if same and element.name in ("INT8", "UINT8") and 0 < abs(codes.step) < _LARGEST_STEP:
            # Rounding errors of a product and a quotient are far less than half a code.
            return codes.codes
    if not saturate:
        return Value(element, quantized(data, scale, zero, element, False))
    return codes_of(data, y_scale, scale, y_zero_point, zero, element)


@op("DequantizeLinear", since=10, values=True)
def dequantize_linear(
    x: Value,
    x_scale: Value,
    x_zero_point: Value | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Value:
    data = x.tensor
    scale = along(real(x_scale), data, axis, block_size)
    zero = None if x_zero_point is None else along(x_zero_point.tensor, data, axis, block_size)
    element = element_of_code(output_dtype) if output_dtype else x_scale.element
    result = Value(element, numbers_of(x, scale, x_zero_point, zero))
    if result.element is FLOAT and not block_size:
        result.codes = Codes(x, x_scale.tensor, x_zero_point, axis % max(data.ndim, 1), _known_number(x_scale))
    return result


@op("QuantizeLinear", domain=MICROSOFT, values=True)
def quantize_linear_of_runtime(x: Value, scale: Value, zero: Value | None = None, **attributes: Any) -> Value:
    return quantize_linear(x, scale, zero, **attributes)


@op("DequantizeLinear", domain=MICROSOFT, values=True)
def dequantize_linear_of_runtime(x: Value, scale: Value, zero: Value | None = None, **attributes: Any) -> Value:
    return dequantize_linear(x, scale, zero, **attributes)


def dynamic_steps(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return u8 codes of a tensor over the range of its elements and 0, their scale and their zero point."""
    scale, zero = _dynamic_scale(x)
    return quantized(x, scale, zero, UINT8), scale, zero.to("uint8")


def _dynamic_scale(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the scale and the zero point of 256 codes over the range of the elements and 0."""
    axes = tuple(range(x.ndim))
    low = ew.minimum(functions.amin(x, axes), 0.0)
    high = ew.maximum(functions.amax(x, axes), 0.0)
    scale = (high - low) / 255.0
    scale = ew.where(scale.eq(0), 1.0, scale)
    return scale, functions.clamp(functions.round(-low / scale), 0.0, 255.0)


@op("DynamicQuantizeLinear", since=11, values=True)
def dynamic_quantize_linear(x: Value) -> tuple[Value, Value, Value]:
    """Quantize with a scale that follows from the elements themselves."""
    codes, scale, zero = dynamic_steps(real(x))
    return Value(UINT8, codes), Value(FLOAT, scale), Value(UINT8, zero)
