"""One dimension of an image brought to another size: where its elements come from, and with which weights."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, float32, float64, int32, int64, uint8
from graphc.base.errors import DTypeError
from graphc.base.sizes.dims import has_sizes
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

_WIDEST, _PRECISION = 15, 22
"""Bits that the largest weight of whole-number images may have, and the most that are taken behind the point."""


def nearest(x: Tensor, axis: int, wanted: int, step: float, offset: float) -> Tensor:
    """The element that lies at, or with an ``offset`` of 0.5 nearest to, each place."""
    extent = x.shape[axis]

    def positions() -> list[Any]:
        # Rounded as a 32-bit product, which decides at ties.
        places = mathematics.floor(ew.mul(ew.add(_counted(wanted, float32), offset), step))
        return [ew.minimum(ew.cast(places, dtype=int64), extent - 1)]

    return index.gather(x, *of_sizes((extent, wanted), positions), axis=axis)


def weighted(x: Tensor, axis: int, wanted: int, step: float, align_corners: bool, cubic: bool) -> Tensor:
    """Sums of the two (or, ``cubic``, four) elements around each place; the edge stands for what lies outside.

    The weights fall linearly with the distance, or are those of cubic convolution with the parameter -0.75 (Keys 1981).
    Takes floating-point and uint8 elements. Places are rounded to the type of ``x``, as PyTorch rounds them.
    """
    if not x.dtype.is_floating_point and x.dtype is not uint8:
        raise DTypeError(f"interpolate: elements are weighted, which {x.dtype.name} cannot be", remedy="input.float()")
    extent, real = x.shape[axis], float32 if x.dtype is float32 else float64
    taps = range(-1, 3) if cubic else range(2)
    if x.dtype is uint8:
        extent, wanted = operator.index(extent), operator.index(wanted)

    def rows_and_weights() -> list[Any]:
        places = _places(extent, wanted, step, align_corners, real)
        if not cubic:
            places = ew.maximum(places, 0)
        first = ew.minimum(ew.cast(mathematics.floor(places), dtype=int64), extent - 1)
        share = ew.sub(ew.cast(places, dtype=float64), ew.cast(first, dtype=float64))
        rows = [mathematics.clamp(ew.add(first, k), 0, extent - 1) for k in taps]
        return [*rows, *(_keys(ew.abs(ew.sub(share, k))) if cubic else ew.abs(ew.sub(1 - k, share)) for k in taps)]

    found = [beside(t, x) for t in of_sizes((extent, wanted), rows_and_weights)]
    rows, weights = found[: len(taps)], found[len(taps) :]
    if x.dtype is uint8:
        return _whole(x, axis, *(np.stack([t._data for t in part], -1) for part in (rows, weights)))
    total: Any = None
    for row, weight in zip(rows, weights, strict=True):
        factor = ew.cast(weight, dtype=x.dtype).reshape(-1, *(1,) * (len(x.shape) - axis - 1))
        part = ew.mul(index.gather(x, row, axis=axis), factor)
        total = part if total is None else ew.add(total, part)
    return total


def of_sizes(sizes: Sequence[int], make: Callable[[], list[Any]]) -> list[Any]:
    """What ``make`` computes of sizes: by operations of a trace where these are known at run time, else constants."""
    if has_sizes(sizes):
        return make()
    with dispatch.use(dispatch.default()), no_grad():
        found = make()
    return [front().constant(t._data) for t in found]


def _counted(wanted: int, dtype: DType) -> Any:
    return ew.cast(index.iota(shape=(wanted,), axis=0, dtype=int64), dtype=dtype)


def _places(extent: int, wanted: int, step: float, align_corners: bool, real: DType) -> Any:
    """Positions in a dimension of ``extent`` elements, rounded to ``real`` where PyTorch's kernels round."""
    if align_corners:
        last, most = front().scalar(wanted - 1, real), front().scalar(extent - 1, real)
        return ew.mul(_counted(wanted, real), ew.where(ew.gt(last, 0), ew.div(most, ew.maximum(last, 1)), 0))
    centres = ew.cast(ew.add(_counted(wanted, real), 0.5), dtype=float64)
    # A multiply-add, rounded once.
    exact = ew.mul(centres, ew.cast(front().scalar(step, real), dtype=float64))
    return ew.cast(ew.sub(exact, 0.5), dtype=real)


def _keys(x: Any, a: float = -0.75) -> Any:
    """Weights by distance: ((a + 2) x - (a + 3)) x^2 + 1 up to 1, ((a x - 5 a) x + 8 a) x - 4 a up to 2."""
    near = ew.add(ew.mul(ew.mul(ew.sub(ew.mul(x, a + 2), a + 3), x), x), 1)
    far = ew.sub(ew.mul(ew.add(ew.mul(ew.sub(ew.mul(x, a), 5 * a), x), 8 * a), x), 4 * a)
    return ew.where(ew.le(x, 1), near, ew.where(ew.lt(x, 2), far, 0.0))


def _whole(x: Tensor, axis: int, rows: np.ndarray, weights: np.ndarray) -> Tensor:
    """Sums of bytes by whole-number weights, rounded to the nearest byte; equal rows are one, with one weight."""
    merged = np.zeros(weights.shape)
    np.add.at(merged, (np.arange(len(rows))[:, None], rows - rows[:, :1]), weights)
    bits = 0
    while bits < _PRECISION and int(0.5 + merged.max(initial=0.0) * 2 ** (bits + 1)) < 1 << _WIDEST:
        bits += 1
    fixed = np.trunc(merged * 2**bits + np.where(merged < 0, -0.5, 0.5)).astype(np.int32)
    taken = np.minimum(rows[:, :1] + np.arange(rows.shape[1]), x.shape[axis] - 1)
    parts = index.gather(x, front().constant(taken), axis=axis)
    factor = fixed.reshape(*fixed.shape, *(1,) * (len(x.shape) - axis - 1))
    products = ew.mul(ew.cast(parts, dtype=int32), front().constant(factor))
    total = ew.add(reduce.sum(products, axes=(axis + 1,)), 1 << (bits - 1))
    return ew.cast(composite.clamp(ew.shift_right(total, bits), 0, 255), dtype=uint8)
