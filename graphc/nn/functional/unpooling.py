"""Unpooling, which puts maxima back to their positions, and pooling over windows at random positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, AttributeValueError, ShapeError
from graphc.nn.functional.spatial import IntOrInts, Ints, batched, per_dimension, unbatched
from graphc.ops.movement.shape import concat
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.tensors.creation import rand
from graphc.tensors.placement import beside
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

__all__ = ["fractional_max_pool2d", "fractional_max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d"]


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return zeros with the elements of [batch, channels, length] at their ``indices``; see ``max_unpool2d``."""
    return _max_unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return zeros with the elements of [batch, channels, height, width] at their ``indices`` in the flattened plane.

    ``max_pool2d(return_indices=True)`` with the same window returns both. ``output_size`` selects one of the sizes
    which the pooling maps to the input's size.
    """
    return _max_unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return zeros with the elements of [batch, channels, depth, height, width] at their ``indices``.

    See ``max_unpool2d``.
    """
    return _max_unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)


def _max_unpool(
    name: str, rank: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    if tuple(input.shape) != tuple(indices.shape):
        raise ShapeError(f"{name}: input {list(input.shape)} and indices {list(indices.shape)} differ")
    x, added = batched(input, rank, name)
    kernel = per_dimension(kernel_size, rank, "kernel_size")
    steps = kernel if stride is None else per_dimension(stride, rank, "stride")
    pads = per_dimension(padding, rank, "padding")
    sizes = tuple((n - 1) * s - 2 * p + k for n, s, p, k in zip(x.shape[2:], steps, pads, kernel, strict=True))
    if output_size is not None:
        requested = tuple(output_size)[-rank:]
        if any(abs(w - n) >= s for w, n, s in zip(requested, sizes, steps, strict=True)):
            raise AttributeValueError(f"{name}: output_size {list(requested)} is too far from {list(sizes)}")
        sizes = requested
    lead = tuple(x.shape[:2])
    zeros = beside(front().constant(np.zeros((*lead, math.prod(sizes)), x.dtype.numpy)), x)
    count = math.prod(x.shape[2:])
    result = zeros.scatter(2, indices.reshape(*lead, count), x.reshape(*lead, count))
    return unbatched(result.reshape(*lead, *sizes), added)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: IntOrInts,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Compute the maximum over windows at random positions of [batch, channels, height, width] (Graham 2014).

    The number of windows is ``output_size``, or ``output_ratio`` times the input's size. With ``return_indices``
    returns a pair as ``max_pool2d`` does.
    """
    order = (1, 0)
    return _fractional(
        "fractional_max_pool2d", order, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: IntOrInts,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Compute the maximum over windows at random positions of a volume; see ``fractional_max_pool2d``."""
    order = (0, 1, 2)
    return _fractional(
        "fractional_max_pool3d", order, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )


def _fractional(
    name: str,
    order: Ints,
    input: Tensor,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    return_indices: bool,
    samples: Tensor | None,
) -> Any:
    rank = len(order)
    x, added = batched(input, rank, name)
    kernel, spatial = per_dimension(kernel_size, rank, "kernel_size"), tuple(x.shape[2:])
    sizes = _fractional_sizes(name, spatial, output_size, output_ratio)
    if any(o < 1 or o + k - 1 > n for o, k, n in zip(sizes, kernel, spatial, strict=True)):
        raise ShapeError(f"{name}: {list(sizes)} windows of {list(kernel)} do not fit {list(spatial)}")
    lead = tuple(x.shape[:2])
    if samples is None:
        samples = rand(*lead, rank, dtype=x.dtype)
    samples = samples[: lead[0]]  # as in PyTorch, samples for a larger batch are cut off
    positions: Tensor | None = None
    for axis, (n, o, k) in enumerate(zip(spatial, sizes, kernel, strict=True)):
        starts = _starts(samples[:, :, order[axis]], n, o, k)
        rows = starts.unsqueeze(-1) + front().constant(np.arange(k))
        shape = [*lead, *(1,) * (2 * rank)]
        shape[2 + axis], shape[2 + rank + axis] = o, k
        rows = rows.reshape(*shape)
        positions = rows if positions is None else positions * n + rows
    assert positions is not None
    flat = positions.reshape(*lead, math.prod((*sizes, *kernel)))
    windows = x.reshape(*lead, math.prod(spatial)).gather(2, flat).reshape(*lead, *sizes, math.prod(kernel))
    result, best = windows.max(-1)
    if not return_indices:
        return unbatched(result, added)
    indices = flat.reshape(*lead, *sizes, math.prod(kernel)).gather(-1, best.unsqueeze(-1)).squeeze(-1)
    return unbatched(result, added), unbatched(indices, added)


def _fractional_sizes(name: str, spatial: Ints, output_size: Any, output_ratio: Any) -> Ints:
    if (output_size is None) == (output_ratio is None):
        raise ArgumentError(f"{name}: pass either output_size or output_ratio")
    if output_size is not None:
        return per_dimension(output_size, len(spatial), "output_size")
    ratios = tuple(output_ratio) if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * len(spatial)
    if len(ratios) != len(spatial) or not all(0 < r < 1 for r in ratios):
        raise AttributeValueError(f"{name}: output_ratio {output_ratio} is not between 0 and 1")
    return tuple(int(n * r) for n, r in zip(spatial, ratios, strict=True))


def _starts(sample: Tensor, extent: int, count: int, kernel: int) -> Tensor:
    """Return the starts of the windows of one dimension, i64 [batch, channels, count]."""
    last = front().constant(np.full((*sample.shape, 1), extent - kernel))
    if count == 1:
        return last
    gap = front().constant(np.asarray((extent - kernel) / (count - 1), sample.dtype.numpy))
    steps = beside(front().constant(np.arange(count - 1).astype(sample.dtype.numpy)), sample)
    offset = sample.unsqueeze(-1)
    before = ew.sub(mathematics.trunc(ew.mul(ew.add(offset, steps), gap)), mathematics.trunc(ew.mul(offset, gap)))
    return concat(before.long(), last, axis=2)
