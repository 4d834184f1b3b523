"""Signals and their frames: ends that repeat a signal's own elements, windows, and sums of overlapping frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.base.dtypes import int64
from graphc.base.errors import ShapeError
from graphc.base.sizes.size import always, is_size
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.selection.index import gather, iota
from graphc.tensors.tensor_base import front

PAD_SOURCES: dict[str, Callable[[Any, Any], Any]] = {
    "reflect": lambda i, extent: extent - 1 - abs(extent - 1 - abs(i)),
    "replicate": lambda i, extent: i.clip(0, extent - 1),
    "circular": lambda i, extent: i % extent,
}
"""Source positions of the elements at positions ``i`` (an array or tensor) of a padded dimension, by mode."""


def pad_along(x: Any, axis: int, before: int, after: int, mode: str) -> Any:
    """Pad one dimension with its own elements; negative counts crop. Raise ShapeError if it has too few elements."""
    if always("==", before, 0) and always("==", after, 0):
        return x
    if mode == "circular" and min(before, after) < 0:
        start = max(-before, 0)
        cut = x.narrow(axis, start, max(x.shape[axis] - start - max(-after, 0), 0))
        return pad_along(cut, axis, max(before, 0), max(after, 0), mode)
    extent = x.shape[axis]
    limit = extent - 1 if mode == "reflect" else extent
    is_unlimited = mode == "replicate" and extent != 0
    amounts = (before, after) if is_size(before) or is_size(after) else (max(before, after),)
    if not is_unlimited and any(amount > limit for amount in amounts):
        raise ShapeError(f"pad: {mode} padding {(before, after)} is too large for a dimension of size {extent}")
    if any(map(is_size, (extent, before, after))):
        targets = ew.sub(iota(shape=(before + extent + after,), axis=0, dtype=int64), before)
        return gather(x, PAD_SOURCES[mode](targets, extent), axis=axis)
    positions = PAD_SOURCES[mode](np.arange(-before, extent + after, dtype=np.int64), extent)
    return gather(x, front().constant(positions), axis=axis)


def overlapped(frames: Any, hop: int) -> Any:
    """Add up frames [..., count, n] that start ``hop`` elements apart to [..., n + hop * (count - 1)].

    Cuts each frame into pieces of ``hop`` elements, and joins the pieces of equal index into rows.
    """
    *lead, count, n = frames.shape
    pieces = -(-n // hop)
    padded = _zeros_along(frames, -1, 0, pieces * hop - n).reshape(*lead, count, pieces, hop)
    rows = [_zeros_along(padded[..., i, :], -2, i, pieces - 1 - i) for i in range(pieces)]
    total = rows[0]
    for row in rows[1:]:
        total = ew.add(total, row)
    return total.reshape(*lead, (count + pieces - 1) * hop).narrow(-1, 0, n + hop * (count - 1))


def _zeros_along(x: Any, axis: int, before: int, after: int) -> Any:
    """Put zeros before and behind the elements of a dimension."""
    low, high = ([0] * len(x.shape) for _ in range(2))
    low[axis], high[axis] = before, after
    return shape.pad(x, low=tuple(low), high=tuple(high), interior=(0,) * len(x.shape), value=0)
