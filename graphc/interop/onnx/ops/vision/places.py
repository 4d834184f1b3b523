"""Gathering and linear interpolation of image elements at computed coordinates."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from graphc.base.dtypes import int64
from graphc.ops.selection import index
from graphc.tensors.tensor import Tensor


def counting(count: Any, like: Tensor) -> Tensor:
    """Return 0, 1, ... along the first dimension, with the rank of ``like`` and size 1 in the other dimensions."""
    return index.iota(shape=(count, *(1,) * (len(like.shape) - 1)), axis=0)


def rows_at(x: Tensor, coordinates: Sequence[Tensor], item: Tensor, zeros: bool = True) -> Tensor:
    """Return [n, channels, *m]: the elements of ``x`` [batch, channels, *spatial] at integer coordinates.

    ``coordinates`` holds a tensor [n, *m] for each spatial dimension. ``item`` [n, 1, ...] holds batch indices.
    Elements outside are 0 or, without ``zeros``, the nearest element.
    """
    sizes = x.shape[2:]
    inside: Any = None
    flat: Any = item
    for coordinate, n in zip(coordinates, sizes, strict=True):
        clamped = coordinate.clamp(0, n - 1)
        flat = flat * n + clamped.to(int64)
        if zeros:
            within = coordinate == clamped
            inside = within if inside is None else inside & within
    rank = len(x.shape)
    rows = x.permute(0, *range(2, rank), 1).reshape(-1, x.shape[1])
    gathered = index.gather(rows, flat, axis=0)
    gathered = gathered.permute(0, len(gathered.shape) - 1, *range(1, len(gathered.shape) - 1))
    return gathered if inside is None else gathered.where(inside.unsqueeze(1), 0.0)


def linear_at(x: Tensor, coordinates: Sequence[Tensor], item: Tensor | None = None, zeros: bool = True) -> Tensor:
    """Return [n, channels, *m]: ``x`` interpolated linearly at real coordinates [n, *m] by dimension. See
    ``rows_at``."""
    item = counting(x.shape[0], coordinates[0]) if item is None else item
    lows = [p.floor().detach() for p in coordinates]
    fractions = [p - low for p, low in zip(coordinates, lows, strict=True)]
    total: Any = None
    for corner in itertools.product((0, 1), repeat=len(coordinates)):
        weight: Any = 1.0
        for side, fraction in zip(corner, fractions, strict=True):
            weight = weight * (fraction if side else 1.0 - fraction)
        corner_values = rows_at(x, [low + side for low, side in zip(lows, corner, strict=True)], item, zeros)
        term = corner_values * weight.unsqueeze(1)
        total = term if total is None else total + term
    return total
