"""Rules of ONNX operators that convolve, and that move pixels between space and channels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.errors import AttributeValueError
from graphc.base.lazy import deferred
from graphc.interop.onnx.ops.vision.places import linear_at
from graphc.interop.onnx.ops.windows import Window, pairs, split, window_of
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import Value
from graphc.nn.functional.convolution import add_bias
from graphc.nn.functional.spatial import padded
from graphc.ops.contraction import convolution
from graphc.ops.selection import index
from graphc.tensors.creation import from_numpy
from graphc.tensors.free_functions import matmul
from graphc.tensors.tensor import Tensor

transposed_convolution_of_codes = deferred(
    "graphc.interop.onnx.ops.quantized.dequantized:transposed_convolution_of_codes"
)
convolution_of_codes = deferred("graphc.interop.onnx.ops.quantized.dequantized:convolution_of_codes")


@op("Conv", values=True)
def conv_of_values(x: Value, w: Value, b: Value | None = None, **attributes: Any) -> Tensor:
    """Convolve; dequantized images and filters by the exact sums of their codes."""
    bias = None if b is None else b.tensor
    strides, pads, dilations = (attributes.get(name) for name in ("strides", "pads", "dilations"))
    mode = attributes.get("auto_pad", "NOTSET")
    if x.codes is None:
        return conv(x.tensor, w.tensor, bias, **attributes)
    geometry = window_of(x.shape[2:], w.shape[2:], strides, pads, dilations, mode)
    exact = convolution_of_codes(x.codes, w.codes, geometry, attributes.get("group", 1))
    if exact is None:
        return conv(x.tensor, w.tensor, bias, **attributes)
    return add_bias("Conv", exact, bias, len(geometry.kernel))


def conv(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Compute the cross-correlation over any number of spatial dimensions."""
    geometry = window_of(x.shape[2:], w.shape[2:], strides, pads, dilations, auto_pad)
    options = {"stride": geometry.stride, "dilation": geometry.dilation, "groups": group}
    if any(min(pair) < 0 for pair in geometry.padding):
        x = padded(x, tuple([(min(low, 0), min(high, 0)) for low, high in geometry.padding]))
    padding = tuple([(max(low, 0), max(high, 0)) for low, high in geometry.padding])
    return add_bias("Conv", convolution.conv(x, w, padding=padding, **options), b, len(geometry.kernel))


@op("ConvTranspose", values=True)
def conv_transpose_of_values(x: Value, w: Value, b: Value | None = None, **attributes: Any) -> Tensor:
    """Convolve; images and filters of codes by the exact sums of codes where blocks of the result do not overlap."""
    bias = None if b is None else b.tensor
    moved = ("pads", "output_padding", "output_shape")
    if x.codes is not None and not any(any(attributes.get(name) or ()) for name in moved):
        geometry = window_of(x.shape[2:], w.shape[2:], attributes.get("strides"), None, attributes.get("dilations"))
        exact = transposed_convolution_of_codes(x.codes, w.codes, geometry, attributes.get("group", 1))
        if exact is not None:
            return add_bias("ConvTranspose", exact, bias, len(geometry.kernel))
    return conv_transpose(x.tensor, w.tensor, bias, **attributes)


def conv_transpose(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Compute the gradient of a convolution with respect to its input, as a forward operator.

    Its padding is cut off from the full result.
    """
    rank = len(w.shape) - 2
    geometry = window_of(x.shape[2:], w.shape[2:], strides, None, dilations)
    extra = tuple(output_padding or (0,) * rank)
    full = [(n - 1) * s + e for n, s, e in zip(x.shape[2:], geometry.stride, geometry.extent, strict=True)]
    result_sizes = _requested_sizes(x, geometry, output_shape, auto_pad)
    if result_sizes is None:
        cut = pairs(pads if auto_pad in ("NOTSET", "") else None, rank)
    else:
        cut = tuple([split(n + e - size, auto_pad) for n, e, size in zip(full, extra, result_sizes, strict=True)])
    # Output padding reduces the cut at the end. A negative cut means zeros to append.
    margins = tuple([(low, high - e) for (low, high), e in zip(cut, extra, strict=True)])
    padding = tuple([(max(low, 0), max(high, 0)) for low, high in margins])
    size = tuple([n - low - high for n, (low, high) in zip(full, padding, strict=True)])
    options = {"stride": geometry.stride, "padding": padding, "dilation": geometry.dilation, "groups": group}
    result = convolution.conv_grad_input(x, w, size=size, **options)
    result = padded(result, tuple([(max(-low, 0), max(-high, 0)) for low, high in margins]))
    return add_bias("ConvTranspose", result, b, rank)


def _requested_sizes(
    x: Tensor, geometry: Window, output_shape: Sequence[int] | None, auto_pad: str
) -> Sequence[Any] | None:
    """Return the sizes of the result where the node gives sizes instead of padding, else None."""
    if output_shape:
        return output_shape[-len(geometry.kernel) :]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        return [n * s for n, s in zip(x.shape[2:], geometry.stride, strict=True)]
    return None


@op("DeformConv", since=19)
def deform_conv(
    x: Tensor,
    w: Tensor,
    offset: Tensor,
    b: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    offset_group: int = 1,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Convolve windows whose taps ``offset`` moves. Values between elements are linearly interpolated."""
    geometry = window_of(x.shape[2:], w.shape[2:], strides, pads, dilations)
    rank, counts = len(geometry.kernel), geometry.counts
    batch, channels, taps, positions = x.shape[0], x.shape[1], math.prod(geometry.kernel), math.prod(counts)
    moved = offset.reshape(batch * offset_group, taps, rank, positions)
    points = [moved[:, :, axis] + _tap_positions(geometry, axis).to(x.dtype) for axis in range(rank)]
    split_up = x.reshape(batch * offset_group, channels // offset_group, *x.shape[2:])
    columns = linear_at(split_up, points)
    if mask is not None:
        columns = columns * mask.reshape(batch * offset_group, 1, taps, positions)
    rows = columns.reshape(batch, group, channels // group * taps, positions)
    product = matmul(w.reshape(group, w.shape[0] // group, -1), rows)
    return add_bias("DeformConv", product.reshape(batch, w.shape[0], *counts), b, rank)


def _tap_positions(geometry: Window, axis: int) -> Tensor:
    """Return [taps, positions]: the coordinate in a dimension of each tap of each window."""
    rank, dims = len(geometry.kernel), (*geometry.kernel, *geometry.counts)
    tap = index.iota(shape=dims, axis=axis) * geometry.dilation[axis]
    start = index.iota(shape=dims, axis=rank + axis) * geometry.stride[axis] - geometry.padding[axis][0]
    return (tap + start).reshape(math.prod(geometry.kernel), math.prod(geometry.counts))


@op("Col2Im", host="image_shape block_shape")
def col2im(
    x: Tensor,
    image_shape: Sequence[int],
    block_shape: Sequence[int],
    *,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Add columns [batch, channels * window, windows] up to images, like ``fold`` in any number of dimensions."""
    geometry = window_of(image_shape, block_shape, strides, pads, dilations)
    padded_sizes = [n + low + high for n, (low, high) in zip(geometry.sizes, geometry.padding, strict=True)]
    taps, counts = math.prod(geometry.kernel), geometry.counts
    axes = [
        (np.arange(k) * d)[:, None] + np.arange(c) * s
        for k, d, c, s in zip(geometry.kernel, geometry.dilation, counts, geometry.stride, strict=True)
    ]
    flat = np.zeros((1, 1), np.int64)
    for coordinates, n in zip(axes, padded_sizes, strict=True):
        joined = flat[:, None, :, None] * n + coordinates[None, :, None, :]
        flat = joined.reshape(flat.shape[0] * coordinates.shape[0], -1)
    batch, channels = x.shape[0], x.shape[1] // taps
    zeros = x.new_zeros(batch, channels, math.prod(padded_sizes))
    added = index.scatter_add(zeros, from_numpy(flat), x.reshape(batch, channels, taps, math.prod(counts)), axis=2)
    cut = tuple([(-low, -high) for low, high in geometry.padding])
    return padded(added.reshape(batch, channels, *padded_sizes), cut)


@op("DepthToSpace")
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    """Rearrange blocks of channels to blocks of pixels. In the mode DCR the channels of a pixel are not adjacent."""
    batch, channels, height, width = x.shape
    size, remaining = blocksize, channels // (blocksize * blocksize)
    if mode == "DCR":
        blocks = x.reshape(batch, size, size, remaining, height, width).permute(0, 3, 4, 1, 5, 2)
    elif mode == "CRD":
        blocks = x.reshape(batch, remaining, size, size, height, width).permute(0, 1, 4, 2, 5, 3)
    else:
        raise AttributeValueError(f"DepthToSpace: mode {mode[:40]!r} is neither DCR nor CRD")
    return blocks.reshape(batch, remaining, height * size, width * size)


@op("SpaceToDepth")
def space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    """Rearrange blocks of pixels to channels."""
    batch, channels, height, width = x.shape
    size = blocksize
    blocks = x.reshape(batch, channels, height // size, size, width // size, size)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return blocks.permute(order).reshape(batch, channels * size * size, height // size, width // size)
