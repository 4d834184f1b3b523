"""Rules of ``quantized_decomposed``, the operators on codes of PyTorch's graphs after quantization (PT2E)."""

from __future__ import annotations

from typing import Any

from graphc.base.dtypes import DType, float16, float32, float64, int8, int64, uint8
from graphc.base.errors import UnsupportedError
from graphc.interop.aten.registry import rule
from graphc.tensors import functions
from graphc.tensors.tensor import Tensor

_EPSILON = 2.0**-23
"""Smallest scale of a row: the distance of 1 from the next f32."""


def decomposed(*names: str) -> Any:
    """Register the decorated function for operators of ``quantized_decomposed``, with overloads."""
    return rule(*(f"quantized_decomposed.{name}" for name in names))


def one(parameter: Any) -> Any:
    """Return the number of a scale or a zero point: as it is, or as a tensor without dimensions."""
    return parameter.reshape(()) if isinstance(parameter, Tensor) else parameter


def _single(x: Tensor) -> Tensor:
    """Convert halves to f32. f32 and f64 stay."""
    return x if x.dtype in (float32, float64) else x.to(float32)


@decomposed("quantize_per_tensor.default", "quantize_per_tensor.tensor", "quantize_per_tensor.tensor2")
def quantize_per_tensor(
    input: Tensor, scale: Any, zero_point: Any, quant_min: Any, quant_max: Any, dtype: DType
) -> Tensor:
    """Multiply by the reciprocal of the scale, as PyTorch does, and round to codes."""
    if isinstance(scale, Tensor):
        factor: Any = (1.0 / one(scale).to(float64)).to(float32)
    else:
        factor = 1.0 / scale
    zero = one(zero_point)
    offset = zero.to(float32) if isinstance(zero, Tensor) else float(zero)
    codes = functions.round(_single(input) * factor) + offset
    return functions.clamp(codes, one(quant_min), one(quant_max)).to(dtype)


@decomposed("dequantize_per_tensor.default", "dequantize_per_tensor.tensor", "dequantize_per_tensor.tensor2")
def dequantize_per_tensor(
    input: Tensor,
    scale: Any,
    zero_point: Any,
    quant_min: Any,
    quant_max: Any,
    dtype: DType,
    *,
    out_dtype: DType | None = None,
) -> Tensor:
    return (input.to(out_dtype or float32) - one(zero_point)) * one(scale)


def along(parameter: Tensor, x: Tensor, axis: int) -> Tensor:
    """Reshape a parameter of each index of an axis to broadcast to ``x``."""
    return parameter.reshape(-1, *(1,) * (x.ndim - 1 - axis % x.ndim))


@decomposed("quantize_per_channel.default")
def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, quant_min: int, quant_max: int, dtype: DType
) -> Tensor:
    steps = functions.round(_single(input) * (1.0 / along(scales, input, axis)))
    return functions.clamp(steps + along(zero_points, input, axis), quant_min, quant_max).to(dtype)


@decomposed("dequantize_per_channel.default")
def dequantize_per_channel(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: DType,
    *,
    out_dtype: DType | None = None,
) -> Tensor:
    codes = input if zero_points is None else input.to(int64) - along(zero_points, input, axis)
    return (codes * along(scales, input, axis)).to(out_dtype or float32)


# ---- scales of values


@decomposed("choose_qparams.tensor")
def choose_qparams(input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: DType) -> tuple[Tensor, Tensor]:
    """Return scale (f64 [1]) and zero point (i64 [1]) of codes over the range of the elements and 0."""
    low, high = _ends(input)
    scale = functions.clamp((high - low) / float(quant_max - quant_min), min=eps)
    zero = functions.clamp(quant_min - functions.round(low / scale), quant_min, quant_max)
    return scale.to(float64).reshape(1), zero.to(int64).reshape(1)


def _ends(x: Tensor) -> tuple[Tensor, Tensor]:
    axes = tuple(range(x.ndim))
    return functions.clamp(functions.amin(x, axes), max=0.0), functions.clamp(functions.amax(x, axes), min=0.0)


@decomposed("choose_qparams_symmetric.tensor")
def choose_qparams_symmetric(
    input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: DType
) -> tuple[Tensor, Tensor]:
    """Return scale (f64 [1]) and zero point (i64 [1]) of codes with the same range on both sides of 0."""
    low, high = _ends(input)
    scale = functions.clamp(functions.maximum(-low, high) / ((quant_max - quant_min) / 2), min=eps)
    return scale.to(float64).reshape(1), input.new_full((1,), 128 if dtype is uint8 else 0, dtype=int64)


# ---- rows and groups


@decomposed("choose_qparams_per_token.default")
def choose_qparams_per_token(input: Tensor, dtype: DType) -> tuple[Tensor, Tensor]:
    """Return a scale for each row, whose largest magnitude has the code 127, and zero points of 0."""
    if dtype is not int8:
        raise UnsupportedError(f"choose_qparams_per_token: {dtype.name} has no codes", remedy="quantize to int8")
    largest = functions.amax(functions.abs(input), -1, True)
    scales = functions.clamp(largest.to(float32) if largest.dtype is float16 else largest, min=1e-5) / 127
    return scales, scales.new_zeros(tuple(scales.shape))


@decomposed("choose_qparams_per_token_asymmetric.default", "_choose_qparams_per_token_asymmetric_impl.default")
def choose_qparams_per_token_asymmetric(input: Tensor, dtype: DType) -> tuple[Tensor, Tensor]:
    """Return scale and zero point of i8 codes for each row. Where both ends cannot be exact, the farther one is."""
    low = functions.clamp(functions.amin(input, -1, True), max=0.0)
    high = functions.clamp(functions.amax(input, -1, True), min=0.0)
    scale = functions.clamp((high - low) / 255.0, min=_EPSILON)
    least, most = low / scale, high / scale
    zero = (-128.0 - least).where((least - 128.0) + (most + 127.0) > 0, 127.0 - most)
    return scale.to(float64), functions.round(functions.clamp(zero, -128.0, 127.0)).to(int64)


@decomposed("quantize_per_token.default")
def quantize_per_token(
    input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: DType
) -> Tensor:
    """Round to codes after the zero point is added."""
    steps = functions.round(input * (1.0 / scales) + zero_points)
    return functions.clamp(steps, quant_min, quant_max).to(dtype)


@decomposed("dequantize_per_token.default")
def dequantize_per_token(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor,
    quant_min: int,
    quant_max: int,
    dtype: DType,
    output_dtype: DType = float32,
) -> Tensor:
    codes = input.to(int64) if not zero_points.dtype.is_floating_point else input
    return ((codes - zero_points) * scales).to(output_dtype)


def _groups(x: Tensor, scales: Tensor, group_size: int) -> int:
    """Return the columns of a group."""
    return x.shape[-1] if group_size > x.shape[-1] and scales.shape[-1] == 1 else group_size


@decomposed("quantize_per_channel_group.default")
def quantize_per_channel_group(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor,
    quant_min: int,
    quant_max: int,
    dtype: DType,
    group_size: int = 128,
) -> Tensor:
    groups = input.reshape(-1, _groups(input, scales, group_size))
    codes = quantize_per_token(groups, scales.reshape(-1, 1), zero_points.reshape(-1, 1), quant_min, quant_max, dtype)
    return codes.reshape(input.shape)


@decomposed("dequantize_per_channel_group.default")
def dequantize_per_channel_group(
    w_int8: Tensor,
    scales: Tensor,
    zero_points: Tensor | None,
    quant_min: int,
    quant_max: int,
    dtype: DType,
    group_size: int = 128,
    output_dtype: DType = float32,
) -> Tensor:
    groups = w_int8.reshape(-1, _groups(w_int8, scales, group_size)).to(int64)
    codes = groups if zero_points is None else groups - zero_points.reshape(-1, 1)
    return (codes * scales.reshape(-1, 1)).reshape(w_int8.shape).to(output_dtype)
