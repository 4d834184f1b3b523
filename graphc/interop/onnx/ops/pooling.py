"""ONNX operators that pool over windows, over whole images, and back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from graphc.base.dtypes import float64, int64
from graphc.interop.onnx.ops.windows import Window, padded, window_of
from graphc.interop.onnx.registry import op
from graphc.nn.functional.spatial import Pairs
from graphc.ops import index, window
from graphc.tensors.creation import ones
from graphc.tensors.tensor import Tensor


@op("MaxPool")
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
    """Maxima, and on request their places in the flattened input."""
    way = window_of(x.shape[2:], kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)
    x, pairs = _fitting(x, way, window.lowest(x.dtype))
    attributes = {"kernel": way.kernel, "stride": way.stride, "padding": pairs, "dilation": way.dilation}
    result = window.max_pool(x, **attributes)
    if call.outputs < 2:
        return result
    flat = _numbers(x, way, pairs, storage_order)
    place = window.max_pool_pick(x.detach().to(float64), flat.to(float64).broadcast_to(*x.shape), **attributes)
    batch, channels = x.shape[:2]
    plane = index.iota(shape=(batch, channels), axis=0) * channels + index.iota(shape=(batch, channels), axis=1)
    return result, place.to(int64) + (plane * math.prod(way.sizes)).reshape(batch, channels, *(1,) * len(way.kernel))


def _fitting(x: Tensor, way: Window, value: Any) -> tuple[Tensor, Pairs]:
    """The input, and the padding that is left to do: pooling takes less than a window of it."""
    pairs = way.covered
    if all(min(pair) >= 0 and max(pair) < e for pair, e in zip(pairs, way.extent, strict=True)):
        return x, pairs
    return padded(x, pairs, value), ((0, 0),) * len(pairs)


def _numbers(x: Tensor, way: Window, pairs: Pairs, storage_order: int) -> Tensor:
    """The places of elements in a plane; with ``storage_order`` the first dimension is the one without gaps."""
    shape = x.shape[2:]
    before = [0 if pairs == way.covered else low for low, _ in way.covered]
    axes = range(len(shape)) if storage_order else reversed(range(len(shape)))
    total, step = None, 1
    for axis in axes:
        part = (index.iota(shape=shape, axis=axis) - before[axis]) * step
        total = part if total is None else total + part
        step = step * way.sizes[axis]
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
    """Means; what a last window covers behind the padding never counts."""
    way = window_of(x.shape[2:], kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)
    rest = way.covered
    if count_include_pad and way.behind != (0,) * len(way.behind):
        x, rest = padded(x, way.padding), tuple([(0, n) for n in way.behind])
        count_include_pad = 0
    fits = all(min(pair) >= 0 and max(pair) < k for pair, k in zip(rest, way.kernel, strict=True))
    if fits and set(way.dilation) == {1}:
        return window.avg_pool(
            x, kernel=way.kernel, stride=way.stride, padding=rest, count_include_pad=bool(count_include_pad)
        )
    there = padded(ones(1, 1, *x.shape[2:], dtype=x.dtype), rest, 1.0 if count_include_pad else 0.0)
    return _window_sums(padded(x, rest), way) / _window_sums(there, way)


def _window_sums(x: Tensor, way: Window) -> Tensor:
    """Sums over windows of what is padded already."""
    total: Any = None
    for at in itertools.product(*(range(k) for k in way.kernel)):
        spans = zip(at, way.dilation, way.counts, way.stride, strict=True)
        part = x[(..., *[slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, n, s in spans])]
        total = part if total is None else total + part
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
    """The p-th roots of sums of p-th powers of magnitudes."""
    way = window_of(x.shape[2:], kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)
    return _root(_window_sums(padded(_power(x, p), way.covered), way), p)


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
    """Zeros with the elements at their places in the flattened result of the window; a larger ``output_shape`` is
    filled with zeros."""
    way = window_of(x.shape[2:], kernel_shape, strides, pads, None)
    spans = zip(way.sizes, way.stride, way.padding, way.kernel, strict=True)
    sizes = [(n - 1) * s - low - high + k for n, s, (low, high), k in spans]
    lead = tuple(x.shape[:2])
    whole = math.prod(lead) * math.prod(sizes)
    result = x.new_zeros(whole).scatter(0, indices.reshape(-1), x.reshape(-1)).reshape(*lead, *sizes)
    if output_shape is None:
        return result
    return padded(result, tuple([(0, wanted - n) for wanted, n in zip(output_shape[2:], sizes, strict=True)]))
