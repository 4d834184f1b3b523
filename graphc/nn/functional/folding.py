"""Windows of images as columns (unfold), and columns summed back to images (fold)."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from graphc.base.errors import AttributeValueError, ShapeError
from graphc.nn.functional.spatial import Ints, batched, per_dimension, unbatched
from graphc.ops.movement import shape
from graphc.ops.selection import index
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

__all__ = ["fold", "unfold"]


def _positions(
    name: str, sizes: Ints, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> tuple[np.ndarray, Ints, Ints]:
    """Compute window positions in the flattened padded image, windows per dimension, and padding.

    The positions are an array with one row per element of a window and one column per window.
    """
    kernel, steps = per_dimension(kernel_size, 2, "kernel_size"), per_dimension(stride, 2, "stride")
    pads, gaps = per_dimension(padding, 2, "padding"), per_dimension(dilation, 2, "dilation")
    if min(*kernel, *steps, *gaps) < 1 or min(pads) < 0:
        raise AttributeValueError(
            f"{name}: kernel {kernel}, stride {steps} and dilation {gaps} must be positive, padding {pads} 0 or more"
        )
    full = tuple(n + 2 * p for n, p in zip(sizes, pads, strict=True))
    counts = tuple((n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(full, kernel, steps, gaps, strict=True))
    if min(counts) < 1:
        raise ShapeError(f"{name}: a window of {kernel} does not fit an image of {sizes}")
    rows, columns = (
        (np.arange(k) * d)[:, None] + (np.arange(c) * s)[None, :]
        for k, d, c, s in zip(kernel, gaps, counts, steps, strict=True)
    )
    positions = rows[:, None, :, None] * full[1] + columns[None, :, None, :]
    return positions.reshape(prod(kernel), prod(counts)).astype(np.int64), counts, pads


@compiled_when_repeated
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Return every window of [batch, channels, height, width] as a column: [batch, channels * window, windows]."""
    x, added = batched(input, 2, "unfold")
    positions, _, pads = _positions("unfold", tuple(x.shape[2:]), kernel_size, dilation, padding, stride)
    low = (0, 0, *pads)
    padded = shape.pad(x, low=low, high=low, interior=(0,) * 4) if any(pads) else x
    flat = padded.reshape(*x.shape[:2], -1) if padded.numel() else padded.reshape(*x.shape[:2], prod(padded.shape[2:]))
    elements = index.gather(flat, front().constant(positions), axis=2)
    return unbatched(elements.reshape(x.shape[0], x.shape[1] * positions.shape[0], positions.shape[1]), added)


@compiled_when_repeated
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Sum columns [batch, channels * window, windows] up to [batch, channels, *output_size]: the transpose of
    ``unfold``.

    Raises ShapeError when the columns do not fit.
    """
    x, added = batched(input, 1, "fold")
    sizes = per_dimension(output_size, 2, "output_size")
    positions, _, pads = _positions("fold", sizes, kernel_size, dilation, padding, stride)
    window, count = positions.shape
    if x.shape[1] % window or x.shape[2] != count:
        raise ShapeError(
            f"fold: columns {list(x.shape)} do not fit {count} windows of {window} elements in an image {list(sizes)}"
        )
    channels = x.shape[1] // window
    height, width = (n + 2 * p for n, p in zip(sizes, pads, strict=True))
    zeros = x.new_zeros(x.shape[0], channels, height * width)
    updates = x.reshape(x.shape[0], channels, window, count)
    total = index.scatter_add(zeros, front().constant(positions), updates, axis=2)
    image = total.reshape(x.shape[0], channels, height, width)
    image = image.narrow(2, pads[0], sizes[0]).narrow(3, pads[1], sizes[1])
    return unbatched(image, added)
