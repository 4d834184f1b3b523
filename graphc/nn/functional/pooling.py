"""Pooling over windows of one or two spatial dimensions, with a fixed window or a fixed output size."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, float64, int64
from graphc.base.errors import AttributeValueError, DTypeError, ShapeError
from graphc.base.sizes.size import is_size
from graphc.nn.functional.spatial import IntOrInts, Ints, Pairs, batched, per_dimension, unbatched
from graphc.ops.movement import shape
from graphc.ops.movement.parts import part_sum, parts_of
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.reduction import window
from graphc.ops.reduction.sliding import Sliding
from graphc.ops.selection.index import gather
from graphc.tensors import composite
from graphc.tensors.placement import beside
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

__all__ = ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d", "avg_pool1d"]
__all__ += ["avg_pool2d", "lp_pool1d", "lp_pool2d", "max_pool1d", "max_pool2d"]


@compiled_when_repeated
def max_pool1d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Compute the maximum over windows of [batch, channels, length]; see ``max_pool2d``."""
    return maximum_windows("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@compiled_when_repeated
def max_pool2d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Compute the maximum over windows of [batch, channels, height, width].

    ``stride`` is the window's size when None. ``ceil_mode`` keeps a last window that extends past the input. With
    ``return_indices`` the result is a pair of the maxima and their positions (i64) in the flattened plane.
    """
    return maximum_windows("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def maximum_windows(
    name: str,
    rank: int,
    x: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None,
    padding: IntOrInts,
    dilation: IntOrInts,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    """Compute the maximum over windows of the last ``rank`` dimensions, optionally with positions; see
    ``max_pool2d``."""
    x, added = batched(x, rank, name)
    if 0 in x.shape[1:]:
        raise ShapeError(
            f"{name}: the input {list(x.shape)} has no elements", remedy="make all dimensions but the batch non-empty"
        )
    kernel, strides, pads = _window(name, rank, kernel_size, stride, padding)
    dilations = per_dimension(dilation, rank, "dilation")
    sizes = tuple(x.shape[2:])
    pairs = _pairs(sizes, kernel, strides, pads, dilations, ceil_mode)
    attrs = {"kernel": kernel, "stride": strides, "padding": pairs, "dilation": dilations}
    result = unbatched(window.max_pool(x, **attrs), added)
    if not return_indices:
        return result
    positions = beside(front().constant(np.arange(np.prod(sizes), dtype=np.float64).reshape(sizes)), x)
    flat = shape.broadcast_to(positions, shape=tuple(x.shape))
    indices = window.max_pool_pick(x.detach().to(float64), flat, **attrs).to(int64)
    return result, unbatched(indices, added)


@compiled_when_repeated
def avg_pool1d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Compute the mean over windows of [batch, channels, length]; see ``avg_pool2d``."""
    return average_windows("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@compiled_when_repeated
def avg_pool2d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Compute the mean over windows of [batch, channels, height, width].

    ``count_include_pad`` counts padding as elements; ``divisor_override``, if given, is the divisor instead.
    """
    args = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return average_windows("avg_pool2d", 2, input, *args)


def average_windows(
    name: str,
    rank: int,
    x: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None,
    padding: IntOrInts,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """Compute the mean over windows of the last ``rank`` dimensions; see ``avg_pool2d``."""
    x, added = batched(x, rank, name)
    kernel, strides, pads = _window(name, rank, kernel_size, stride, padding)
    if divisor_override == 0:
        raise AttributeValueError(f"{name}: divisor_override is 0", remedy="pass another divisor, or None")
    pairs = _pairs(tuple(x.shape[2:]), kernel, strides, pads, (1,) * rank, ceil_mode)
    if x.dtype is int64:
        slide = Sliding(kernel, strides, pairs, (1,) * rank)
        return unbatched(_integer_means(name, x, slide, pads, count_include_pad, divisor_override), added)
    if divisor_override is not None:
        total = window.avg_pool(x, kernel=kernel, stride=strides, padding=pairs, count_include_pad=True)
        return unbatched(total * (float(np.prod(kernel)) / divisor_override), added)
    if ceil_mode and count_include_pad and any(low != high for low, high in pairs):
        # Positions past the padding, in a last window, never count: pad first, then count only real positions.
        low = (0, 0, *pads)
        x = shape.pad(x, low=low, high=low, interior=(0,) * len(low), value=0.0)
        pairs = tuple((0, high - p) for (_, high), p in zip(pairs, pads, strict=True))
        count_include_pad = False
    result = window.avg_pool(x, kernel=kernel, stride=strides, padding=pairs, count_include_pad=count_include_pad)
    return unbatched(result, added)


def _integer_means(
    name: str, x: Tensor, slide: Sliding, pads: Ints, count_include_pad: bool, divisor: int | None
) -> Tensor:
    """Compute means of integers, rounded towards 0 as in PyTorch."""
    sizes = tuple(x.shape[2:])
    counts = slide.output(name, sizes)
    low, high = zip((0, 0), (0, 0), *slide.padding, strict=True)
    wide = shape.pad(x, low=low, high=high, interior=(0,) * len(low), value=0)
    total: Any = None
    for offsets in itertools.product(*(range(k) for k in slide.kernel)):
        window = tuple(slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(offsets, counts, slide.stride, strict=True))
        elements_at = wide[(..., *window)]
        total = elements_at if total is None else ew.add(total, elements_at)
    if divisor is None:
        ends = [p if count_include_pad else 0 for p in pads]
        covered = [
            [min(i * s - p + k, n + e) - max(i * s - p, -e) for i in range(count)]
            for count, k, s, p, n, e in zip(counts, slide.kernel, slide.stride, pads, sizes, ends, strict=True)
        ]
        elements: Any = front().constant(functools.reduce(np.multiply, np.ix_(*(np.asarray(c) for c in covered))))
    else:
        elements = divisor
    quotient = ew.floor_div(ew.abs(total), ew.abs(elements) if divisor is None else abs(elements))
    return ew.mul(ew.mul(quotient, ew.sign(total)), 1 if divisor is None or divisor > 0 else -1)


def _window(
    name: str, rank: int, kernel_size: IntOrInts, stride: IntOrInts | None, padding: IntOrInts
) -> tuple[Ints, Ints, Ints]:
    kernel = per_dimension(kernel_size, rank, "kernel_size")
    empty = stride is None or (isinstance(stride, Sequence) and not stride)
    strides = kernel if empty else per_dimension(stride, rank, "stride")
    pads = per_dimension(padding, rank, "padding")
    if any(p < 0 or 2 * p > k for p, k in zip(pads, kernel, strict=True)):
        raise AttributeValueError(f"{name}: padding {pads} must be between 0 and half of the window {kernel}")
    return kernel, strides, pads


def _pairs(sizes: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> Pairs:
    """Return padding before and after; with ``ceil_mode`` enough after for a last window that starts inside the
    input."""
    pairs = []
    for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        extra = 0
        if ceil_mode:
            span = n + 2 * p - d * (k - 1) - 1
            windows = (span + s - 1) // s + 1
            if (windows - 1) * s >= n + p:
                windows -= 1
            extra = max((windows - 1) * s - span, 0)
        pairs.append((p, p + extra))
    return tuple(pairs)


@compiled_when_repeated
def adaptive_avg_pool1d(input: Tensor, output_size: IntOrInts) -> Tensor:
    """Compute the mean over windows that divide the length of [batch, channels, length] into ``output_size``."""
    return _adaptive_avg_pool("adaptive_avg_pool1d", 1, input, output_size)


@compiled_when_repeated
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Compute the mean over windows that divide [batch, channels, height, width] into ``output_size``.

    None as a size keeps the input's size.
    """
    return _adaptive_avg_pool("adaptive_avg_pool2d", 2, input, output_size)


def _adaptive_avg_pool(name: str, rank: int, x: Tensor, output_size: Any) -> Tensor:
    x, added = batched(x, rank, name)
    return unbatched(average_parts(x, output_sizes(name, rank, x, output_size)), added)


def average_parts(x: Tensor, output_shape: Ints) -> Tensor:
    """Compute means over windows that divide the spatial dimensions of [batch, channels, *spatial] into
    ``output_shape``."""
    rank, sizes = len(output_shape), tuple(x.shape[2:])
    if not x.dtype.is_floating_point:
        raise DTypeError(f"means need a floating-point input, got {x.dtype.name}", remedy="pass input.float()")
    if all(n == 1 for n in output_shape):
        return x.mean(tuple(range(2, rank + 2)), keepdim=True)
    if all(m and n % m == 0 for n, m in zip(sizes, output_shape, strict=True)):
        kernel = tuple(n // m for n, m in zip(sizes, output_shape, strict=True))
        return window.avg_pool(x, kernel=kernel, stride=kernel, padding=((0, 0),) * rank, count_include_pad=True)
    for axis, (n, m) in enumerate(zip(sizes, output_shape, strict=True), start=2):
        counts = beside(_window_sizes(n, m, x.dtype), x).reshape(-1, *(1,) * (rank + 1 - axis))
        x = ew.div(part_sum(x, axis=axis, count=m), counts)
    return x


def _window_sizes(extent: int, count: int, dtype: DType) -> Tensor:
    """Return the number of elements of each segment that ``parts_of`` returns; ``extent`` may be symbolic."""
    if not is_size(extent):
        return front().constant(np.array([stop - start for start, stop in parts_of(extent, count)], dtype.numpy))
    segment = front().constant(np.arange(count))
    return (((segment + 1) * extent + (count - 1)) // count - segment * extent // count).to(dtype)


def adaptive_max_pool1d(input: Tensor, output_size: IntOrInts, return_indices: bool = False) -> Any:
    """Compute the maximum over windows that divide the length of [batch, channels, length] into ``output_size``."""
    return _adaptive_max_pool("adaptive_max_pool1d", 1, input, output_size, return_indices)


@compiled_when_repeated
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Compute the maximum over windows that divide [batch, channels, height, width] into ``output_size``.

    None as a size keeps the input's size. With ``return_indices`` the result is a pair of the maxima and their
    positions (i64) in the flattened plane.
    """
    return _adaptive_max_pool("adaptive_max_pool2d", 2, input, output_size, return_indices)


def _adaptive_max_pool(name: str, rank: int, x: Tensor, output_size: Any, return_indices: bool) -> Any:
    x, added = batched(x, rank, name)
    output_shape, sizes = output_sizes(name, rank, x, output_size), tuple(x.shape[2:])
    if 0 in output_shape:
        empty = x.narrow(2, 0, 0).reshape(*x.shape[:2], *output_shape)
        return unbatched(empty, added) if not return_indices else (unbatched(empty, added),) * 2
    if all(n % m == 0 for n, m in zip(sizes, output_shape, strict=True)):
        kernel = tuple(n // m for n, m in zip(sizes, output_shape, strict=True))
        result = maximum_windows(name, rank, x, kernel, None, 0, 1, False, return_indices)
    else:
        result = _largest_of_parts(x, output_shape, return_indices)
    return tuple(unbatched(t, added) for t in result) if return_indices else unbatched(result, added)


def _largest_of_parts(x: Tensor, output_shape: Ints, return_indices: bool) -> Any:
    """Compute maxima over windows of different sizes, one after the other, optionally with positions in the plane."""
    sizes, rank = tuple(x.shape[2:]), len(output_shape)
    plane = np.arange(math.prod(sizes), dtype=np.int64).reshape(sizes)
    maxima, positions = [], []
    for bounds in itertools.product(*(parts_of(n, m) for n, m in zip(sizes, output_shape, strict=True))):
        slices = tuple(slice(start, stop) for start, stop in bounds)
        window_size = tuple(stop - start for start, stop in bounds)
        best = maximum_windows("", rank, x[(..., *slices)], window_size, None, 0, 1, False, return_indices)
        maxima.append((best[0] if return_indices else best).flatten(2))
        if return_indices:
            local = beside(front().constant(plane[slices].reshape(-1)), x)
            positions.append(gather(local, best[1].flatten(2), axis=0))
    result = shape.concat(*maxima, axis=2).reshape(*x.shape[:2], *output_shape)
    if not return_indices:
        return result
    return result, shape.concat(*positions, axis=2).reshape(*x.shape[:2], *output_shape)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: IntOrInts, stride: IntOrInts | None = None, ceil_mode: bool = False
) -> Tensor:
    """Compute the ``norm_type``-th root of the sum of powers over windows of [batch, channels, length]."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: IntOrInts, stride: IntOrInts | None = None, ceil_mode: bool = False
) -> Tensor:
    """Compute the ``norm_type``-th root of the sum of powers over windows of [batch, channels, height, width]."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def _lp_pool(
    rank: int, x: Tensor, p: float, kernel_size: IntOrInts, stride: IntOrInts | None, ceil_mode: bool
) -> Tensor:
    count = float(np.prod(per_dimension(kernel_size, rank, "kernel_size")))
    pool = avg_pool1d if rank == 1 else avg_pool2d
    # A last window past the input is averaged over its elements inside, and its mean counts as that of a full window.
    total = ew.mul(pool(mathematics.pow(x, float(p)), kernel_size, stride, 0, ceil_mode), count)
    # NOTE: for an odd norm type the root of a negative sum is NaN, as in PyTorch; a sum of 0 has no gradient.
    return mathematics.pow(ew.mul(ew.sign(total), composite.relu(ew.abs(total))), 1.0 / p)


def output_sizes(name: str, rank: int, x: Tensor, output_size: Any) -> Ints:
    """Return ``output_size`` per spatial dimension of [batch, channels, *spatial]; None keeps the input's size."""
    sizes = x.shape[2:]
    entries = (output_size,) * rank if output_size is None or isinstance(output_size, int) else tuple(output_size)
    if len(entries) != rank:
        raise AttributeValueError(f"{name}: output_size must be one number or {rank}, got {entries}")
    output_shape = tuple(n if m is None else m for n, m in zip(sizes, entries, strict=True))
    if any(m < 0 for m in output_shape):
        raise AttributeValueError(
            f"{name}: output_size {output_shape} is negative", remedy="pass sizes of 0 or more, or None"
        )
    if 0 in sizes:
        raise ShapeError(
            f"{name}: the input {list(x.shape)} has no elements to pool",
            remedy="pass spatial dimensions of size 1 or more",
        )
    return output_shape
