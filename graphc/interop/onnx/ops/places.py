"""Elements of images at computed places."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from graphc.base.dtypes import int64
from graphc.ops import index
from graphc.tensors.tensor import Tensor


def counting(count: Any, like: Tensor) -> Tensor:
    """0, 1, ... along the first dimension of a tensor of the rank of ``like``, the others of size 1."""
    return index.iota(shape=(count, *(1,) * (len(like.shape) - 1)), axis=0)


def rows_at(x: Tensor, places: Sequence[Tensor], item: Tensor, zeros: bool = True) -> Tensor:
    """[n, channels, *m]: the elements of ``x`` [batch, channels, *spatial] at whole places [n, *m] by dimension, of the
    items of the batch that ``item`` [n, 1, ...] names. What lies outside is 0, or, without ``zeros``, the nearest
    element."""
    sizes = x.shape[2:]
    inside: Any = None
    flat: Any = item
    for place, n in zip(places, sizes, strict=True):
        kept = place.clamp(0, n - 1)
        flat = flat * n + kept.to(int64)
        if zeros:
            within = place == kept
            inside = within if inside is None else inside & within
    rank = len(x.shape)
    rows = x.permute(0, *range(2, rank), 1).reshape(-1, x.shape[1])
    found = index.gather(rows, flat, axis=0)
    found = found.permute(0, len(found.shape) - 1, *range(1, len(found.shape) - 1))
    return found if inside is None else found.where(inside.unsqueeze(1), 0.0)


def linear_at(x: Tensor, places: Sequence[Tensor], item: Tensor | None = None, zeros: bool = True) -> Tensor:
    """[n, channels, *m]: ``x`` at real places [n, *m] by dimension, interpolated linearly; see ``rows_at``."""
    item = counting(x.shape[0], places[0]) if item is None else item
    lows = [p.floor().detach() for p in places]
    shares = [p - low for p, low in zip(places, lows, strict=True)]
    total: Any = None
    for corner in itertools.product((0, 1), repeat=len(places)):
        weight: Any = 1.0
        for side, share in zip(corner, shares, strict=True):
            weight = weight * (share if side else 1.0 - share)
        found = rows_at(x, [low + side for low, side in zip(lows, corner, strict=True)], item, zeros)
        part = found * weight.unsqueeze(1)
        total = part if total is None else total + part
    return total
