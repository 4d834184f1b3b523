"""Layers with weights and inputs of 8 bits: exact integer sums for inference, rounded floats for training."""

from __future__ import annotations

from math import prod

from graphc.base.dtypes import float32, uint8
from graphc.base.errors import ShapeError
from graphc.nn.functional.byte_products import (
    ByteMatrix,
    are_exact_reals,
    convolved_as_reals,
    grouped_convolved,
    real_convolved,
)
from graphc.nn.functional.spatial import Ints, Pairs, batched, unbatched
from graphc.ops.pointwise.quantization import quantize_linear
from graphc.tensors import functions
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor

WEIGHT_LIMIT = 127
"""Largest code of a weight. -128 is unused, so that a weight and its negative have the same magnitude."""
INPUT_LIMIT = 255
"""Largest code of an input."""
_BYTE_RANK = 2
"""Largest number of spatial dimensions of a convolution of bytes."""


def rounded_codes(ratio: Tensor, zero: Tensor | None, low: float, high: float) -> Tensor:
    """Round ratios to the nearest integers, ties to even, add the zero point, and clamp. The type stays."""
    codes = functions.round(ratio)
    codes = codes if zero is None else codes + zero.to(ratio.dtype)
    return functions.clamp(codes, low, high)


def input_codes(x: Tensor, scale: float, zero: int) -> Tensor:
    """Return the u8 codes of f32 elements, as ONNX's QuantizeLinear does."""
    return quantize_linear(x, scale=scale, low=-zero, high=INPUT_LIMIT - zero, zero=zero, dtype=uint8)


@compiled_when_repeated
def quantized_linear(
    input: Tensor, codes: Tensor, weight_scale: Tensor, scale: float, zero: int, bias: Tensor | None = None
) -> Tensor:
    """Compute ``input @ weight.T + bias`` for real input [..., in], from codes of both factors, in the input's type.

    Args:
        input: real numbers [..., in]. They are rounded to u8 codes.
        codes: i8 codes [out, in] of the weight.
        weight_scale: f32 scale of the weight, [] or [out].
        scale, zero: scale (an f32 number) and zero point of the input's codes.
        bias: f32 [out], or None.
    """
    if not input.shape or input.shape[-1] != codes.shape[1]:
        raise ShapeError(
            f"linear: input {list(input.shape)} and weight {list(codes.shape)} differ in their last dimension",
            remedy=f"pass an input with {codes.shape[1]} features",
        )
    rows = (input.reshape(1, -1) if len(input.shape) == 1 else input).to(float32)
    total = ByteMatrix.of(codes.t(), None).product(input_codes(rows, scale, zero), zero or None)
    result = total.to(float32) * (weight_scale * scale)
    result = result if bias is None else result + bias
    return (result.reshape(-1) if len(input.shape) == 1 else result).to(input.dtype)


@compiled_when_repeated
def quantized_conv(
    input: Tensor,
    codes: Tensor,
    weight_scale: Tensor,
    scale: float,
    zero: int,
    bias: Tensor | None,
    stride: Ints,
    padding: Pairs,
    dilation: Ints,
    groups: int,
) -> Tensor:
    """Convolve a real input [batch, channels, *size] with codes i8 [out, channels / groups, *kernel].

    The other arguments are those of ``quantized_linear`` and of ``conv2d``. ``padding`` has two numbers per dimension.
    """
    rank = len(stride)
    x, added = batched(input, rank, f"conv{rank}d")
    if x.shape[1] != codes.shape[1] * groups:
        raise ShapeError(
            f"conv{rank}d: the input has {x.shape[1]} channels, the weight takes {codes.shape[1] * groups}",
            remedy=f"pass an input with {codes.shape[1] * groups} channels",
        )
    total = _convolved(x.to(float32), codes, scale, zero, stride, padding, dilation, groups)
    wide = (-1, *(1,) * rank)
    factor = weight_scale * scale
    result = total.to(float32) * (factor.reshape(*wide) if factor.ndim else factor)
    result = result if bias is None else result + bias.reshape(*wide)
    return unbatched(result.to(input.dtype), added)


def _convolved(
    x: Tensor, codes: Tensor, scale: float, zero: int, stride: Ints, padding: Pairs, dilation: Ints, groups: int
) -> Tensor:
    """Return the sums of a convolution of codes, as i32 or f32."""
    rank, largest = len(stride), INPUT_LIMIT * WEIGHT_LIMIT
    if groups == 1 and rank <= _BYTE_RANK:
        return real_convolved(input_codes(x, scale, zero), zero or None, codes, None, padding, stride, dilation)
    if groups > 1 and are_exact_reals(prod(codes.shape[1:]), largest):
        image = quantize_linear(x, scale=scale, low=-zero, high=INPUT_LIMIT - zero, zero=0, dtype=float32)
        return grouped_convolved(image, codes.to(float32), padding, stride, dilation, groups)
    pixels = input_codes(x, scale, zero)
    return convolved_as_reals(pixels, zero or None, codes, None, largest, padding, stride, dilation, groups)


# ---- training


def fake_quantized(x: Tensor, scale: Tensor, zero: Tensor | None, low: int, high: int) -> Tensor:
    """Return the numbers that codes from ``low`` to ``high`` represent, for elements of ``x``.

    The gradient passes unchanged for elements within the range, and is 0 outside.
    """
    offset = 0.0 if zero is None else zero.to(float32)
    within = functions.minimum(functions.maximum(x, (low - offset) * scale), (high - offset) * scale)
    codes = rounded_codes(within.detach() / scale, zero, low, high)
    return within + ((codes - offset) * scale - within).detach()


def weight_scale_of(weight: Tensor, per_channel: bool) -> Tensor:
    """Return the scale that maps the largest magnitude, of each output channel or of all, to the code 127."""
    magnitude = weight.detach().abs()
    largest = magnitude.reshape(magnitude.shape[0], -1).amax(1) if per_channel else magnitude.amax()
    return (largest / WEIGHT_LIMIT).where(largest > 0, 1.0)


def along_filters(scale: Tensor, weight: Tensor) -> Tensor:
    """Reshape scales of output channels to broadcast to the weight."""
    return scale.reshape(-1, *(1,) * (weight.ndim - 1)) if scale.ndim else scale


def weight_codes(weight: Tensor, scale: Tensor) -> Tensor:
    """Return the codes of a weight, from -127 to 127."""
    return rounded_codes(weight / along_filters(scale, weight), None, -WEIGHT_LIMIT, WEIGHT_LIMIT).to("int8")


def fake_quantized_weight(weight: Tensor, scale: Tensor) -> Tensor:
    """Return the numbers that the codes of a weight represent, with the gradient of the identity."""
    return fake_quantized(weight, along_filters(scale, weight), None, -WEIGHT_LIMIT, WEIGHT_LIMIT)
