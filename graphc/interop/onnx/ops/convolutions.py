"""ONNX operators that convolve, and that rearrange pixels between space and channels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.errors import AttributeValueError
from graphc.interop.onnx.ops.places import linear_at
from graphc.interop.onnx.ops.windows import Window, padded, pairs, split, window_of
from graphc.interop.onnx.registry import op
from graphc.nn.functional.convolution import add_bias
from graphc.ops import convolution, index
from graphc.tensors.creation import from_numpy
from graphc.tensors.free_functions import matmul
from graphc.tensors.tensor import Tensor


@op("Conv")
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
    """Cross-correlation over any number of spatial dimensions."""
    found = window_of(x.shape[2:], w.shape[2:], strides, pads, dilations, auto_pad)
    options = {"stride": found.stride, "dilation": found.dilation, "groups": group}
    if any(min(pair) < 0 for pair in found.padding):
        x = padded(x, tuple([(min(low, 0), min(high, 0)) for low, high in found.padding]))
    padding = tuple([(max(low, 0), max(high, 0)) for low, high in found.padding])
    return add_bias("Conv", convolution.conv(x, w, padding=padding, **options), b, len(found.kernel))


@op("ConvTranspose")
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
    """The gradient of a convolution used forward: its padding is cut off from the whole result."""
    rank = len(w.shape) - 2
    way = window_of(x.shape[2:], w.shape[2:], strides, None, dilations)
    extra = tuple(output_padding or (0,) * rank)
    whole = [(n - 1) * s + e for n, s, e in zip(x.shape[2:], way.stride, way.extent, strict=True)]
    wanted = _wanted_sizes(x, way, output_shape, auto_pad)
    if wanted is None:
        cut = pairs(pads if auto_pad in ("NOTSET", "") else None, rank)
    else:
        cut = tuple([split(n + e - size, auto_pad) for n, e, size in zip(whole, extra, wanted, strict=True)])
    # What is cut off behind is less where the result shall be longer; where nothing is left to cut, zeros follow.
    left = tuple([(low, high - e) for (low, high), e in zip(cut, extra, strict=True)])
    padding = tuple([(max(low, 0), max(high, 0)) for low, high in left])
    size = tuple([n - low - high for n, (low, high) in zip(whole, padding, strict=True)])
    options = {"stride": way.stride, "padding": padding, "dilation": way.dilation, "groups": group}
    result = convolution.conv_grad_input(x, w, size=size, **options)
    result = padded(result, tuple([(max(-low, 0), max(-high, 0)) for low, high in left]))
    return add_bias("ConvTranspose", result, b, rank)


def _wanted_sizes(x: Tensor, way: Window, output_shape: Sequence[int] | None, auto_pad: str) -> Sequence[Any] | None:
    """The sizes of the result where it is these that are given, and not the padding."""
    if output_shape:
        return output_shape[-len(way.kernel) :]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        return [n * s for n, s in zip(x.shape[2:], way.stride, strict=True)]
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
    """A convolution whose window reads at places that ``offset`` moves, between elements by linear interpolation."""
    way = window_of(x.shape[2:], w.shape[2:], strides, pads, dilations)
    rank, counts = len(way.kernel), way.counts
    batch, channels, taps, positions = x.shape[0], x.shape[1], math.prod(way.kernel), math.prod(counts)
    moved = offset.reshape(batch * offset_group, taps, rank, positions)
    places = [moved[:, :, axis] + _places(way, axis).to(x.dtype) for axis in range(rank)]
    split_up = x.reshape(batch * offset_group, channels // offset_group, *x.shape[2:])
    columns = linear_at(split_up, places)
    if mask is not None:
        columns = columns * mask.reshape(batch * offset_group, 1, taps, positions)
    rows = columns.reshape(batch, group, channels // group * taps, positions)
    product = matmul(w.reshape(group, w.shape[0] // group, -1), rows)
    return add_bias("DeformConv", product.reshape(batch, w.shape[0], *counts), b, rank)


def _places(way: Window, axis: int) -> Tensor:
    """[taps, positions]: where in a dimension each element of each window lies."""
    rank, dims = len(way.kernel), (*way.kernel, *way.counts)
    tap = index.iota(shape=dims, axis=axis) * way.dilation[axis]
    start = index.iota(shape=dims, axis=rank + axis) * way.stride[axis] - way.padding[axis][0]
    return (tap + start).reshape(math.prod(way.kernel), math.prod(way.counts))


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
    """Columns [batch, channels * window, windows] added up to images: what ``fold`` does, in any dimension."""
    way = window_of(image_shape, block_shape, strides, pads, dilations)
    whole = [n + low + high for n, (low, high) in zip(way.sizes, way.padding, strict=True)]
    taps, counts = math.prod(way.kernel), way.counts
    axes = [
        (np.arange(k) * d)[:, None] + np.arange(c) * s
        for k, d, c, s in zip(way.kernel, way.dilation, counts, way.stride, strict=True)
    ]
    flat = np.zeros((1, 1), np.int64)
    for places, n in zip(axes, whole, strict=True):
        joined = flat[:, None, :, None] * n + places[None, :, None, :]
        flat = joined.reshape(flat.shape[0] * places.shape[0], -1)
    batch, channels = x.shape[0], x.shape[1] // taps
    zeros = x.new_zeros(batch, channels, math.prod(whole))
    added = index.scatter_add(zeros, from_numpy(flat), x.reshape(batch, channels, taps, math.prod(counts)), axis=2)
    cut = tuple([(-low, -high) for low, high in way.padding])
    return padded(added.reshape(batch, channels, *whole), cut)


@op("DepthToSpace")
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    """Blocks of channels become blocks of pixels; in the mode DCR the channels of a pixel are apart."""
    batch, channels, height, width = x.shape
    size, kept = blocksize, channels // (blocksize * blocksize)
    if mode == "DCR":
        parts = x.reshape(batch, size, size, kept, height, width).permute(0, 3, 4, 1, 5, 2)
    elif mode == "CRD":
        parts = x.reshape(batch, kept, size, size, height, width).permute(0, 1, 4, 2, 5, 3)
    else:
        raise AttributeValueError(f"DepthToSpace: mode {mode[:40]!r} is neither DCR nor CRD")
    return parts.reshape(batch, kept, height * size, width * size)


@op("SpaceToDepth")
def space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    """Blocks of pixels become channels."""
    batch, channels, height, width = x.shape
    size = blocksize
    parts = x.reshape(batch, channels, height // size, size, width // size, size)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return parts.permute(order).reshape(batch, channels * size * size, height // size, width // size)
