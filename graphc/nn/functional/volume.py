"""Convolution and pooling of volumes, composed of the operations on planes and sequences."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from graphc.base.errors import AttributeValueError, ShapeError
from graphc.nn.functional.convolution import add_bias, conv2d, conv_transpose2d, same_padding
from graphc.nn.functional.pooling import (
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    average_parts,
    average_windows,
    avg_pool2d,
    max_pool1d,
    max_pool2d,
    maximum_windows,
    output_sizes,
)
from graphc.nn.functional.spatial import IntOrInts, batched, per_dimension, unbatched
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.tensors.mixed import product
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor

__all__ = ["adaptive_avg_pool3d", "adaptive_max_pool3d", "avg_pool3d", "conv3d", "conv_transpose3d", "lp_pool3d"]
__all__ += ["max_pool3d"]


@product
@compiled_when_repeated
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts | str = 0,
    dilation: IntOrInts = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlate [batch, channels, depth, height, width] with weight [out, channels / groups, *kernel].

    Sums convolutions of planes over the kernel's depth; see ``conv2d``.
    """
    x, added = batched(input, 3, "conv3d")
    if len(weight.shape) != 5:
        raise ShapeError(f"conv3d: the weight {list(weight.shape)} does not have 5 dimensions")
    steps, gaps = per_dimension(stride, 3, "stride"), per_dimension(dilation, 3, "dilation")
    if padding == "same" and any(s != 1 for s in steps):
        raise AttributeValueError(
            f'conv3d: padding "same" needs stride 1, got {steps}', remedy="use stride 1, or pass padding as numbers"
        )
    x, pads = _padded(x, padding, tuple(weight.shape[2:]), gaps)
    kernel, depth = weight.shape[2], x.shape[2]
    count = (depth - gaps[0] * (kernel - 1) - 1) // steps[0] + 1
    if count < 1:
        raise ShapeError(f"conv3d: a kernel of depth {kernel} does not fit an input of depth {depth}")
    partial_sums = []
    for k in range(kernel):
        planes = x[:, :, k * gaps[0] : k * gaps[0] + (count - 1) * steps[0] + 1 : steps[0]]
        flat = planes.transpose(1, 2).reshape(x.shape[0] * count, x.shape[1], *x.shape[3:])
        partial_sums.append(conv2d(flat, weight[:, :, k], None, steps[1:], pads, gaps[1:], groups))
    total = functools.reduce(ew.add, partial_sums)
    result = total.reshape(x.shape[0], count, *total.shape[1:]).transpose(1, 2)
    return unbatched(add_bias("conv3d", result, bias, 3), added)


@product
@compiled_when_repeated
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts = 0,
    output_padding: IntOrInts = 0,
    groups: int = 1,
    dilation: IntOrInts = 1,
) -> Tensor:
    """Apply the gradient of conv3d as a forward function.

    Shapes: input [batch, in, depth, height, width], weight [in, out / groups, *kernel]. Sums transposed convolutions of
    planes over the kernel's depth; see ``conv_transpose2d``.
    """
    x, added = batched(input, 3, "conv_transpose3d")
    if len(weight.shape) != 5:
        raise ShapeError(f"conv_transpose3d: the weight {list(weight.shape)} does not have 5 dimensions")
    steps, gaps = per_dimension(stride, 3, "stride"), per_dimension(dilation, 3, "dilation")
    pads, extra = per_dimension(padding, 3, "padding"), per_dimension(output_padding, 3, "output_padding")
    if extra[0] >= max(steps[0], gaps[0]):
        raise AttributeValueError(
            f"conv_transpose3d: output_padding {extra[0]} must be smaller than stride {steps[0]} or dilation {gaps[0]}"
        )
    batch, channels, depth = x.shape[:3]
    kernel, reach = weight.shape[2], gaps[0] * (weight.shape[2] - 1)
    size = (depth - 1) * steps[0] - 2 * pads[0] + reach + extra[0] + 1
    if size < 1:
        raise ShapeError(f"conv_transpose3d: padding {pads[0]} leaves no output of {depth} planes")
    flat = x.transpose(1, 2).reshape(batch * depth, channels, *x.shape[3:])
    partial_sums = []
    for k in range(kernel):
        planes = conv_transpose2d(flat, weight[:, :, k], None, steps[1:], pads[1:], extra[1:], groups, gaps[1:])
        volume = planes.reshape(batch, depth, *planes.shape[1:])
        before, none = k * gaps[0], (0,) * 3
        after = reach - before + extra[0]
        low, high, between = (0, before, *none), (0, after, *none), (0, steps[0] - 1, *none)
        partial_sums.append(shape.pad(volume, low=low, high=high, interior=between))
    total = functools.reduce(ew.add, partial_sums)[:, pads[0] : pads[0] + size].transpose(1, 2)
    return unbatched(add_bias("conv_transpose3d", total, bias, 3), added)


def _padded(x: Tensor, padding: Any, kernel: tuple[int, ...], dilation: tuple[int, ...]) -> tuple[Tensor, Any]:
    """Pad the depth of the input (all dimensions if ``padding`` is a name); return it and the planes' remaining
    padding."""
    if isinstance(padding, str):
        pairs = same_padding(kernel, dilation) if padding == "same" else ((0, 0),) * 3
        plane_padding: Any = 0
    else:
        pads = per_dimension(padding, 3, "padding")
        pairs, plane_padding = ((pads[0], pads[0]), (0, 0), (0, 0)), pads[1:]
    if any(low or high for low, high in pairs):
        low, high = zip((0, 0), (0, 0), *pairs, strict=True)
        x = shape.pad(x, low=low, high=high, interior=(0,) * 5)
    return x, plane_padding


def _separable(name: str, x: Tensor, planes: Callable[[Tensor], Tensor], depths: Callable[[Tensor], Tensor]) -> Tensor:
    """Pool height and width, then depth."""
    x, added = batched(x, 3, name)
    batch, channels, depth = x.shape[:3]
    flat = planes(x.reshape(batch, channels * depth, *x.shape[3:]))
    area = math.prod(flat.shape[2:])
    columns = flat.reshape(batch, channels, depth, area).transpose(2, 3).reshape(batch, channels * area, depth)
    pooled = depths(columns)
    pooled_planes = pooled.reshape(batch, channels, area, pooled.shape[2]).transpose(2, 3)
    return unbatched(pooled_planes.reshape(batch, channels, pooled.shape[2], *flat.shape[2:]), added)


@compiled_when_repeated
def max_pool3d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Compute the maximum over windows of [batch, channels, depth, height, width]; see ``max_pool2d``."""
    if return_indices:
        return maximum_windows("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, True)
    kernel = per_dimension(kernel_size, 3, "kernel_size")
    steps = kernel if stride is None else per_dimension(stride, 3, "stride")
    pads, gaps = per_dimension(padding, 3, "padding"), per_dimension(dilation, 3, "dilation")
    return _separable(
        "max_pool3d",
        input,
        lambda x: max_pool2d(x, kernel[1:], steps[1:], pads[1:], gaps[1:], ceil_mode),
        lambda x: max_pool1d(x, kernel[0], steps[0], pads[0], gaps[0], ceil_mode),
    )


@compiled_when_repeated
def avg_pool3d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Compute the mean over windows of [batch, channels, depth, height, width]; see ``avg_pool2d``."""
    if not input.dtype.is_floating_point:  # Means of means would be rounded twice.
        args = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        return average_windows("avg_pool3d", 3, input, *args)
    # With a given divisor, planes are summed first.
    plane_divisor = None if divisor_override is None else 1
    kernel = per_dimension(kernel_size, 3, "kernel_size")
    steps = kernel if stride is None else per_dimension(stride, 3, "stride")
    pads = per_dimension(padding, 3, "padding")
    return _separable(
        "avg_pool3d",
        input,
        lambda x: avg_pool2d(x, kernel[1:], steps[1:], pads[1:], ceil_mode, count_include_pad, plane_divisor),
        lambda x: average_windows(
            "avg_pool3d", 1, x, kernel[0], steps[0], pads[0], ceil_mode, count_include_pad, divisor_override
        ),
    )


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Compute the mean over windows that divide [batch, channels, depth, height, width] into ``output_size``."""
    x, added = batched(input, 3, "adaptive_avg_pool3d")
    return unbatched(average_parts(x, output_sizes("adaptive_avg_pool3d", 3, x, output_size)), added)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: IntOrInts, stride: IntOrInts | None = None, ceil_mode: bool = False
) -> Tensor:
    """Compute the ``norm_type``-th root of the sum of powers over windows of [batch, channels, depth, height,
    width]."""
    count = float(math.prod(per_dimension(kernel_size, 3, "kernel_size")))
    total = ew.mul(avg_pool3d(mathematics.pow(input, float(norm_type)), kernel_size, stride, 0, ceil_mode), count)
    return ew.mul(ew.sign(total), mathematics.pow(ew.abs(total), 1.0 / norm_type))


def _with_positions(
    name: str, input: Tensor, planes: Callable[[Tensor], Any], depths: Callable[[Tensor], Any]
) -> tuple[Tensor, Tensor]:
    """Compute maxima and their positions in the flattened volume: first of each plane, then along the depth."""
    x, added = batched(input, 3, name)
    batch, channels, count, *area = x.shape
    best, within = planes(x.reshape(batch, channels * count, *area))
    size = tuple(best.shape[2:])
    columns, positions = (t.reshape(batch, channels, count, math.prod(size)).transpose(2, 3) for t in (best, within))
    result, chosen = depths(columns.reshape(batch, channels * math.prod(size), count))
    chosen = chosen.reshape(batch, channels, math.prod(size), chosen.shape[2])
    volume_positions = chosen * (area[0] * area[1]) + positions.gather(3, chosen)
    shapes = (batch, channels, chosen.shape[3], *size)
    both = [t.reshape(*chosen.shape).transpose(2, 3).reshape(*shapes) for t in (result, volume_positions)]
    return unbatched(both[0], added), unbatched(both[1], added)


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Compute the maximum over windows that divide [batch, channels, depth, height, width] into ``output_size``.

    With ``return_indices`` the result is a pair of the maxima and their positions (i64) in the flattened volume.
    """
    depth, *plane = output_sizes("adaptive_max_pool3d", 3, batched(input, 3, "adaptive_max_pool3d")[0], output_size)
    if return_indices:
        return _with_positions(
            "adaptive_max_pool3d",
            input,
            lambda x: adaptive_max_pool2d(x, tuple(plane), True),
            lambda x: adaptive_max_pool1d(x, depth, True),
        )
    return _separable(
        "adaptive_max_pool3d",
        input,
        lambda x: adaptive_max_pool2d(x, tuple(plane)),
        lambda x: adaptive_max_pool1d(x, depth),
    )
