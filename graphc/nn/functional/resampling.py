"""One dimension of an image brought to another size: where its elements come from, and with which weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.dtypes import float32, int32, uint8
from graphc.base.errors import DTypeError
from graphc.ops import elementwise as ew
from graphc.ops import index, reduce
from graphc.tensors import composite
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

_WIDEST, _PRECISION = 15, 22
"""Bits that the largest weight of whole-number images may have, and the most that are taken behind the point."""


def nearest(x: Tensor, axis: int, wanted: int, step: float, offset: float) -> Tensor:
    """The element that lies at, or with an ``offset`` of 0.5 nearest to, each place."""
    # Rounded as a 32-bit product, which decides at ties.
    places = np.floor((np.arange(wanted, dtype=np.float32) + np.float32(offset)) * np.float32(step))
    positions = np.minimum(places.astype(np.int64), x.shape[axis] - 1)
    return index.gather(x, front().constant(positions), axis=axis)


def weighted(x: Tensor, axis: int, wanted: int, step: float, align_corners: bool, cubic: bool) -> Tensor:
    """Sums of the two (or, ``cubic``, four) elements around each place; the edge stands for what lies outside.

    The weights fall linearly with the distance, or are those of cubic convolution with the parameter -0.75 (Keys 1981).
    Takes floating-point and uint8 elements. Places are rounded to the type of ``x``, as PyTorch rounds them.
    """
    if x.dtype.kind != "f" and x.dtype is not uint8:
        raise DTypeError(f"interpolate: elements are weighted, which {x.dtype.name} cannot be", remedy="input.float()")
    real = np.float32 if x.dtype is float32 else np.float64
    extent = x.shape[axis]
    places = _places(extent, wanted, step, align_corners, real)
    if not cubic:
        places = np.maximum(places, 0)
    first = np.minimum(np.floor(places).astype(np.int64), extent - 1)
    share = (places - first).astype(np.float64)
    taps = range(-1, 3) if cubic else range(2)
    weights = np.stack([_keys(np.abs(share - k)) if cubic else np.abs(1 - k - share) for k in taps], -1)
    rows = np.clip(first[:, None] + np.asarray(taps), 0, extent - 1)
    if x.dtype is uint8:
        return _whole(x, axis, rows, weights)
    total: Any = None
    for row, weight in zip(rows.T, weights.T, strict=True):
        factor = weight.astype(x.dtype.numpy).reshape(-1, *(1,) * (len(x.shape) - axis - 1))
        part = ew.mul(index.gather(x, front().constant(row), axis=axis), front().constant(factor))
        total = part if total is None else ew.add(total, part)
    return total


def _places(extent: int, wanted: int, step: float, align_corners: bool, real: type[np.floating]) -> np.ndarray:
    """Positions in a dimension of ``extent`` elements, rounded to ``real`` where PyTorch's kernels round."""
    if align_corners:
        scale = real(extent - 1) / real(wanted - 1) if wanted > 1 else real(0)
        return np.arange(wanted).astype(real) * scale
    centres = (np.arange(wanted).astype(real) + real(0.5)).astype(np.float64)
    # A multiply-add, rounded once.
    return (centres * np.float64(real(step)) - 0.5).astype(real)


def _keys(distance: np.ndarray, a: float = -0.75) -> np.ndarray:
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))


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
