"""Rules of ONNX operators that pool over windows or whole images, and of the inverse of max pooling."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from graphc.base.dtypes import float64, int64
from graphc.base.sizes.size import is_size
from graphc.interop.onnx.ops.windows import Window, window_of
from graphc.interop.onnx.registry import op
from graphc.nn.functional.spatial import Pairs, padded
from graphc.ops.reduction import window
from graphc.ops.selection import index
from graphc.tensors.creation import ones
from graphc.tensors.tensor import Tensor


@op("MaxPool", moves=True)
def max_pool(
    x: Tensor,
    *,
    call: Any,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    storage_order: int = 0,
    strides: Sequence[int] | None = None,
) -> Any:
    """Return maxima, and a second result with their indices in the flattened input."""
    geometry = window_of(x.shape[2:], kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)
    x, pairs = _fitting(x, geometry, window.lowest(x.dtype))
    attributes = {"kernel": geometry.kernel, "stride": geometry.stride, "padding": pairs, "dilation": geometry.dilation}
    result = window.max_pool(x, **attributes)
    if call.outputs < 2:
        return result
    flat = _numbers(x, geometry, pairs, storage_order)
    picked = window.max_pool_pick(x.detach().to(float64), flat.to(float64).broadcast_to(*x.shape), **attributes)
    batch, channels = x.shape[:2]
    plane = index.iota(shape=(batch, channels), axis=0) * channels + index.iota(shape=(batch, channels), axis=1)
    return result, picked.to(int64) + (plane * math.prod(geometry.sizes)).reshape(
        batch, channels, *(1,) * len(geometry.kernel)
    )


def _fitting(x: Tensor, geometry: Window, value: Any) -> tuple[Tensor, Pairs]:
    """Return the input and the padding that pooling still has to do, which must be smaller than a window.

    Larger padding is applied to the input.
    """
    pairs = geometry.covered
    fixed = not any(is_size(side) for pair in pairs for side in pair)
    if fixed and all(0 <= side < e for pair, e in zip(pairs, geometry.extent, strict=True) for side in pair):
        return x, pairs
    return padded(x, pairs, value), ((0, 0),) * len(pairs)


def _numbers(x: Tensor, geometry: Window, pairs: Pairs, storage_order: int) -> Tensor:
    """Return the indices of elements in a plane. With ``storage_order`` the first dimension is contiguous."""
    shape = x.shape[2:]
    before = [0 if pairs == geometry.covered else low for low, _ in geometry.covered]
    axes = range(len(shape)) if storage_order else reversed(range(len(shape)))
    total, step = None, 1
    for axis in axes:
        term = (index.iota(shape=shape, axis=axis) - before[axis]) * step
        total = term if total is None else total + term
        step = step * geometry.sizes[axis]
    assert total is not None
    return total


@op("AveragePool")
def average_pool(
    x: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Return means. Elements after the padding, under a last partial window, never count."""
    geometry = window_of(x.shape[2:], kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)
    remaining = geometry.covered
    if count_include_pad and geometry.overhang != (0,) * len(geometry.overhang):
        x, remaining = padded(x, geometry.padding), tuple([(0, n) for n in geometry.overhang])
        count_include_pad = 0
    fits = all(min(pair) >= 0 and max(pair) < k for pair, k in zip(remaining, geometry.kernel, strict=True))
    if fits and set(geometry.dilation) == {1}:
        return window.avg_pool(
            x,
            kernel=geometry.kernel,
            stride=geometry.stride,
            padding=remaining,
            count_include_pad=bool(count_include_pad),
        )
    counted = padded(ones(1, 1, *x.shape[2:], dtype=x.dtype), remaining, 1.0 if count_include_pad else 0.0)
    return _window_sums(padded(x, remaining), geometry) / _window_sums(counted, geometry)


def _window_sums(x: Tensor, geometry: Window) -> Tensor:
    """Return sums over windows of an already padded input."""
    total: Any = None
    for at in itertools.product(*(range(k) for k in geometry.kernel)):
        spans = zip(at, geometry.dilation, geometry.counts, geometry.stride, strict=True)
        tap = x[(..., *[slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, n, s in spans])]
        total = tap if total is None else total + tap
    return total


@op("LpPool")
def lp_pool(
    x: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    p: int = 2,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Return the p-th roots of sums of p-th powers of magnitudes."""
    geometry = window_of(x.shape[2:], kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)
    return _root(_window_sums(padded(_power(x, p), geometry.covered), geometry), p)


def _power(x: Tensor, p: int) -> Tensor:
    return x * x if p == 2 else x.abs() if p == 1 else x.abs().pow(float(p))


def _root(total: Tensor, p: int) -> Tensor:
    return total.sqrt() if p == 2 else total if p == 1 else total.pow(1.0 / p)


def _spatial(x: Tensor) -> tuple[int, ...]:
    return tuple(range(2, len(x.shape)))


@op("GlobalAveragePool")
def global_average_pool(x: Tensor) -> Tensor:
    return x.mean(_spatial(x), keepdim=True)


@op("GlobalMaxPool")
def global_max_pool(x: Tensor) -> Tensor:
    return x.amax(_spatial(x), keepdim=True)


@op("GlobalLpPool")
def global_lp_pool(x: Tensor, *, p: int = 2) -> Tensor:
    return _root(_power(x, p).sum(_spatial(x), keepdim=True), p)


@op("MaxUnpool", host="output_shape")
def max_unpool(
    x: Tensor,
    indices: Tensor,
    output_shape: Sequence[int] | None = None,
    *,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Scatter elements to their indices in zeros of ``output_shape``, as MaxPool counts them and ONNX Runtime does.
    ONNX's evaluator counts them in the shape without ``output_shape``."""
    if output_shape is None:
        geometry = window_of(x.shape[2:], kernel_shape, strides, pads, None)
        spans = zip(geometry.sizes, geometry.stride, geometry.padding, geometry.kernel, strict=True)
        output_shape = [*x.shape[:2], *((n - 1) * s - low - high + k for n, s, (low, high), k in spans)]
    zeros = x.new_zeros(math.prod(output_shape))
    return zeros.scatter(0, indices.reshape(-1), x.reshape(-1)).reshape(*output_shape)
