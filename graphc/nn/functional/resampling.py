"""Resampling of one dimension of an image: source positions and weights of the resized elements."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, float32, float64, int32, int64, uint8
from graphc.base.errors import DTypeError
from graphc.base.sizes.dims import has_sizes
from graphc.base.sizes.size import always
from graphc.ops import dispatch
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.reduction import reduce
from graphc.ops.selection import index
from graphc.tape.grad_mode import no_grad
from graphc.tensors import composite
from graphc.tensors.placement import beside
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

_WEIGHT_BITS, _FRACTION_BITS = 15, 22
"""Maximum bits of a fixed-point weight for uint8 images, and maximum fraction bits."""
SMALL_IMAGE = 128
"""Largest height + width of a result that PyTorch computes by its vectorized kernel (UpSampleKernel.cpp,
``_use_vectorized_kernel_cond_2d``), for images in the usual order of dimensions."""


def ignores_scale(mode: str, dtype: DType, sizes: Sequence[int], new_sizes: Sequence[int], dim: int) -> bool:
    """Check whether sizes alone determine the source positions of a dimension, as in the kernels of PyTorch: where the
    size stays the same in linear modes and in images of bytes, or stays the same or doubles in a small image that takes
    nearest elements."""
    same = always("==", new_sizes[dim], sizes[dim])
    if mode == "nearest":
        small = len(sizes) == 2 and always("<=", sum(new_sizes), SMALL_IMAGE)
        return small and (same or always("==", new_sizes[dim], 2 * sizes[dim]))
    return same and ("linear" in mode or (mode == "bicubic" and dtype is uint8))


def nearest(x: Tensor, axis: int, size: int, step: float, offset: float) -> Tensor:
    """Resize ``axis`` to ``size``: result i is the element at ``floor((i + offset) step)``.

    An ``offset`` of 0.5 selects the nearest element.
    """
    extent = x.shape[axis]

    def rows() -> list[Any]:
        # Rounded as a 32-bit product, which decides at ties.
        positions = mathematics.floor(ew.mul(ew.add(_counted(size, float32), offset), step))
        return [ew.minimum(ew.cast(positions, dtype=int64), extent - 1)]

    return index.gather(x, *of_sizes((extent, size), rows), axis=axis)


def weighted(x: Tensor, axis: int, size: int, step: float, align_corners: bool, cubic: bool) -> Tensor:
    """Resize ``axis`` to ``size``: sum the two (or, ``cubic``, four) weighted elements around each source position.

    The edge is repeated outside. The weights fall linearly with the distance, or follow cubic convolution with the
    parameter -0.75 (Keys 1981). Takes floating-point and uint8 elements. Positions are rounded to the type of ``x``, as
    PyTorch rounds them.
    """
    if not x.dtype.is_floating_point and x.dtype is not uint8:
        raise DTypeError(f"interpolate: cannot weight elements of type {x.dtype.name}", remedy="pass input.float()")
    extent, real = x.shape[axis], float32 if x.dtype is float32 else float64
    taps = range(-1, 3) if cubic else range(2)
    if x.dtype is uint8:
        extent, size = operator.index(extent), operator.index(size)

    def rows_and_weights() -> list[Any]:
        positions = _positions(extent, size, step, align_corners, real)
        if not cubic:
            positions = ew.maximum(positions, 0)
        first = ew.minimum(ew.cast(mathematics.floor(positions), dtype=int64), extent - 1)
        fraction = ew.sub(ew.cast(positions, dtype=float64), ew.cast(first, dtype=float64))
        rows = [mathematics.clamp(ew.add(first, k), 0, extent - 1) for k in taps]
        weights = (_keys(ew.abs(ew.sub(fraction, k))) if cubic else ew.abs(ew.sub(1 - k, fraction)) for k in taps)
        return [*rows, *weights]

    tensors = [beside(t, x) for t in of_sizes((extent, size), rows_and_weights)]
    rows, weights = tensors[: len(taps)], tensors[len(taps) :]
    if x.dtype is uint8:
        return _weighted_bytes(x, axis, *(np.stack([t._data for t in group], -1) for group in (rows, weights)))
    total: Any = None
    for row, weight in zip(rows, weights, strict=True):
        factor = ew.cast(weight, dtype=x.dtype).reshape(-1, *(1,) * (len(x.shape) - axis - 1))
        product = ew.mul(index.gather(x, row, axis=axis), factor)
        total = product if total is None else ew.add(total, product)
    return total


def of_sizes(sizes: Sequence[int], make: Callable[[], list[Any]]) -> list[Any]:
    """Run ``make``, which computes tensors from sizes: as constants, or as traced ops if a size is symbolic."""
    if has_sizes(sizes):
        return make()
    with dispatch.use(dispatch.default()), no_grad():
        tensors = make()
    return [front().constant(t._data) for t in tensors]


def _counted(count: int, dtype: DType) -> Any:
    return ew.cast(index.iota(shape=(count,), axis=0, dtype=int64), dtype=dtype)


def _positions(extent: int, size: int, step: float, align_corners: bool, real: DType) -> Any:
    """Return source positions in a dimension of ``extent`` elements, rounded to ``real`` where PyTorch rounds."""
    if align_corners:
        last, source_last = front().scalar(size - 1, real), front().scalar(extent - 1, real)
        return ew.mul(_counted(size, real), ew.where(ew.gt(last, 0), ew.div(source_last, ew.maximum(last, 1)), 0))
    centres = ew.cast(ew.add(_counted(size, real), 0.5), dtype=float64)
    # A multiply-add in f64, rounded once.
    exact = ew.mul(centres, ew.cast(front().scalar(step, real), dtype=float64))
    return ew.cast(ew.sub(exact, 0.5), dtype=real)


def _keys(x: Any, a: float = -0.75) -> Any:
    """Return weights by distance: ((a + 2) x - (a + 3)) x^2 + 1 up to 1, ((a x - 5 a) x + 8 a) x - 4 a up to 2."""
    near = ew.add(ew.mul(ew.mul(ew.sub(ew.mul(x, a + 2), a + 3), x), x), 1)
    far = ew.sub(ew.mul(ew.add(ew.mul(ew.sub(ew.mul(x, a), 5 * a), x), 8 * a), x), 4 * a)
    return ew.where(ew.le(x, 1), near, ew.where(ew.lt(x, 2), far, 0.0))


def _weighted_bytes(x: Tensor, axis: int, rows: np.ndarray, weights: np.ndarray) -> Tensor:
    """Sum bytes with fixed-point weights, rounded to the nearest byte; equal rows are merged into one weight."""
    merged = np.zeros(weights.shape)
    np.add.at(merged, (np.arange(len(rows))[:, None], rows - rows[:, :1]), weights)
    bits = 0
    while bits < _FRACTION_BITS and int(0.5 + merged.max(initial=0.0) * 2 ** (bits + 1)) < 1 << _WEIGHT_BITS:
        bits += 1
    fixed = np.trunc(merged * 2**bits + np.where(merged < 0, -0.5, 0.5)).astype(np.int32)
    source_rows = np.minimum(rows[:, :1] + np.arange(rows.shape[1]), x.shape[axis] - 1)
    elements = index.gather(x, front().constant(source_rows), axis=axis)
    factor = fixed.reshape(*fixed.shape, *(1,) * (len(x.shape) - axis - 1))
    products = ew.mul(ew.cast(elements, dtype=int32), front().constant(factor))
    total = ew.add(reduce.sum(products, axes=(axis + 1,)), 1 << (bits - 1))
    return ew.cast(composite.clamp(ew.shift_right(total, bits), 0, 255), dtype=uint8)
