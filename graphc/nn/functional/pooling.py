"""Pooling over windows of one or two spatial dimensions, with fixed windows or a fixed output size."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc import composite
from graphc.dtypes import float64, int64
from graphc.errors import AttributeValueError
from graphc.nn.functional.spatial import IntOrInts, Ints, Pairs, batched, per_dimension, unbatched
from graphc.ops import contraction, shape, window
from graphc.ops import elementwise as ew
from graphc.ops import math as mathematics
from graphc.ops.index import gather
from graphc.tensor import Tensor
from graphc.tensor_base import front


def max_pool1d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maximum over windows of [batch, channels, length]; see ``max_pool2d``."""
    return maximum_windows("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maximum over windows of [batch, channels, height, width].

    ``stride`` is the window's size when None. ``ceil_mode`` keeps a last window that leaves the input. With
    ``return_indices`` the result is a pair with the position (i64) of each maximum in its flattened plane.
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
    """Maximum over windows of the last ``rank`` dimensions, on request with positions; see ``max_pool2d``."""
    x, added = batched(x, rank, name)
    kernel, strides, pads = _window(name, rank, kernel_size, stride, padding)
    dilations = per_dimension(dilation, rank, "dilation")
    sizes = tuple(x.shape[2:])
    pairs = _pairs(sizes, kernel, strides, pads, dilations, ceil_mode)
    attrs = {"kernel": kernel, "stride": strides, "padding": pairs, "dilation": dilations}
    result = unbatched(window.max_pool(x, **attrs), added)
    if not return_indices:
        return result
    positions = front().constant(np.arange(np.prod(sizes), dtype=np.float64).reshape(sizes))
    flat = shape.broadcast_to(positions, shape=tuple(x.shape))
    indices = window.max_pool_pick(x.detach().to(float64), flat, **attrs).to(int64)
    return result, unbatched(indices, added)


def avg_pool1d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Mean over windows of [batch, channels, length]; see ``avg_pool2d``."""
    return average_windows("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Mean over windows of [batch, channels, height, width].

    ``count_include_pad`` counts padding as elements; ``divisor_override`` divides by a number of its own.
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
    """Mean over windows of the last ``rank`` dimensions; see ``avg_pool2d``."""
    x, added = batched(x, rank, name)
    kernel, strides, pads = _window(name, rank, kernel_size, stride, padding)
    if divisor_override == 0:
        raise AttributeValueError(f"{name}: divisor_override is 0")
    pairs = _pairs(tuple(x.shape[2:]), kernel, strides, pads, (1,) * rank, ceil_mode)
    if divisor_override is not None:
        total = window.avg_pool(x, kernel=kernel, stride=strides, padding=pairs, count_include_pad=True)
        return unbatched(total * (float(np.prod(kernel)) / divisor_override), added)
    if ceil_mode and count_include_pad and any(low != high for low, high in pairs):
        # What a last window covers beyond the padding never counts: pad first, then count only what is there.
        low = (0, 0, *pads)
        x = shape.pad(x, low=low, high=low, interior=(0,) * len(low), value=0.0)
        pairs = tuple((0, high - p) for (_, high), p in zip(pairs, pads, strict=True))
        count_include_pad = False
    result = window.avg_pool(x, kernel=kernel, stride=strides, padding=pairs, count_include_pad=count_include_pad)
    return unbatched(result, added)


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
    """Padding before and after; with ``ceil_mode`` enough after for a last window that starts inside."""
    pairs = []
    for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        extra = 0
        if ceil_mode:
            span = n + 2 * p - d * (k - 1) - 1
            windows = -(-span // s) + 1
            if (windows - 1) * s >= n + p:
                windows -= 1
            extra = max((windows - 1) * s - span, 0)
        pairs.append((p, p + extra))
    return tuple(pairs)


def adaptive_avg_pool1d(input: Tensor, output_size: IntOrInts) -> Tensor:
    """Mean over windows that divide the length of [batch, channels, length] into ``output_size`` parts."""
    return _adaptive_avg_pool("adaptive_avg_pool1d", 1, input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Mean over windows that divide [batch, channels, height, width] into ``output_size`` (None: as it is) parts."""
    return _adaptive_avg_pool("adaptive_avg_pool2d", 2, input, output_size)


def _adaptive_avg_pool(name: str, rank: int, x: Tensor, output_size: Any) -> Tensor:
    x, added = batched(x, rank, name)
    wanted = _output_size(name, rank, x, output_size)
    sizes = tuple(x.shape[2:])
    if all(n == 1 for n in wanted):
        result = x.mean(tuple(range(2, rank + 2)), keepdim=True)
    elif all(n % m == 0 for n, m in zip(sizes, wanted, strict=True)):
        kernel = tuple(n // m for n, m in zip(sizes, wanted, strict=True))
        attrs = {"kernel": kernel, "stride": kernel, "padding": ((0, 0),) * rank, "count_include_pad": True}
        result = window.avg_pool(x, **attrs)
    else:
        result = _weighted_windows(x, sizes, wanted)
    return unbatched(result, added)


def _weighted_windows(x: Tensor, sizes: Ints, wanted: Ints) -> Tensor:
    """Windows of unequal size, as products with constant matrices."""
    for axis, (n, m) in enumerate(zip(sizes, wanted, strict=True)):
        weights = np.zeros((n, m), x.dtype.numpy)
        for i, (start, stop) in enumerate(_parts(n, m)):
            weights[start:stop, i] = 1.0 / (stop - start)
        moved = x.transpose(axis + 2, -1)
        x = contraction.matmul(moved, front().constant(weights)).transpose(axis + 2, -1)
    return x


def _parts(extent: int, parts: int) -> list[tuple[int, int]]:
    return [(i * extent // parts, -(-(i + 1) * extent // parts)) for i in range(parts)]


def adaptive_max_pool1d(input: Tensor, output_size: IntOrInts, return_indices: bool = False) -> Any:
    """Maximum over windows that divide the length of [batch, channels, length] into ``output_size`` parts."""
    return _adaptive_max_pool("adaptive_max_pool1d", 1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maximum over windows that divide [batch, channels, height, width] into ``output_size`` (None: as it is) parts.

    With ``return_indices`` the result is a pair with the position (i64) of each maximum in its flattened plane.
    """
    return _adaptive_max_pool("adaptive_max_pool2d", 2, input, output_size, return_indices)


def _adaptive_max_pool(name: str, rank: int, x: Tensor, output_size: Any, return_indices: bool) -> Any:
    x, added = batched(x, rank, name)
    sizes = tuple(x.shape[2:])
    wanted = _output_size(name, rank, x, output_size)
    windows = [
        x[(..., *(slice(a, b) for a, b in parts))].flatten(2)
        for parts in itertools.product(*(_parts(n, m) for n, m in zip(sizes, wanted, strict=True)))
    ]
    columns = [w.amax(2, keepdim=True) for w in windows]
    result = shape.concat(*columns, axis=2).reshape(*x.shape[:2], *wanted)
    if not return_indices:
        return unbatched(result, added)
    planes = np.arange(math.prod(sizes), dtype=np.int64).reshape(sizes)
    places = [
        planes[tuple(slice(a, b) for a, b in parts)].reshape(-1)
        for parts in itertools.product(*(_parts(n, m) for n, m in zip(sizes, wanted, strict=True)))
    ]
    found = [
        gather(front().constant(place), w.argmax(2, keepdim=True), axis=0)
        for place, w in zip(places, windows, strict=True)
    ]
    indices = shape.concat(*found, axis=2).reshape(*x.shape[:2], *wanted)
    return unbatched(result, added), unbatched(indices, added)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: IntOrInts, stride: IntOrInts | None = None, ceil_mode: bool = False
) -> Tensor:
    """The ``norm_type``-th root of the sum of powers over windows of [batch, channels, length]."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: IntOrInts, stride: IntOrInts | None = None, ceil_mode: bool = False
) -> Tensor:
    """The ``norm_type``-th root of the sum of powers over windows of [batch, channels, height, width]."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def _lp_pool(
    rank: int, x: Tensor, p: float, kernel_size: IntOrInts, stride: IntOrInts | None, ceil_mode: bool
) -> Tensor:
    count = float(np.prod(per_dimension(kernel_size, rank, "kernel_size")))
    pool = avg_pool1d if rank == 1 else avg_pool2d
    # A last window that leaves the input is averaged over what is there, and counts as a whole one.
    total = ew.mul(pool(mathematics.pow(x, float(p)), kernel_size, stride, 0, ceil_mode), count)
    return ew.mul(ew.sign(total), mathematics.pow(composite.relu(ew.abs(total)), 1.0 / p))


def _output_size(name: str, rank: int, x: Tensor, output_size: Any) -> Ints:
    sizes = x.shape[2:]
    given = (output_size,) * rank if output_size is None or isinstance(output_size, int) else tuple(output_size)
    if len(given) != rank:
        raise AttributeValueError(f"{name}: output_size is one number or {rank}, got {given}")
    wanted = tuple(n if m is None else m for n, m in zip(sizes, given, strict=True))
    if any(m < 1 for m in wanted):
        raise AttributeValueError(f"{name}: output_size {wanted} must be positive")
    return wanted
