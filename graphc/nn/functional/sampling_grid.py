"""Images sampled at the points of a grid, and grids of affine maps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import float64, int64
from graphc.base.errors import AttributeValueError, ShapeError
from graphc.ops import elementwise as ew
from graphc.ops import index, matrix_product
from graphc.ops import math as mathematics
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tensors import composite
from graphc.tensors.placement import beside
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool = False) -> Tensor:
    """Points [batch, height, width, 2] of the maps ``theta`` [batch, 2, 3] for images of ``size`` [batch, channels,
    height, width]: coordinates from -1 to 1, which are the centres of the corner pixels with ``align_corners``."""
    batch, _, height, width = size
    if tuple(theta.shape) != (batch, 2, 3):
        raise ShapeError(f"affine_grid: theta is {list(theta.shape)}, not {[batch, 2, 3]}")
    axes = []
    for n in (height, width):
        steps = np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1)
        axes.append(steps if align_corners or n < 2 else steps * (n - 1) / n)
    rows, columns = np.meshgrid(*axes, indexing="ij")
    points = np.stack([columns, rows, np.ones_like(rows)], -1).reshape(height * width, 3)
    found = matrix_product.matmul(
        beside(front().constant(points.astype(theta.dtype.numpy)), theta), theta, transpose_b=True
    )
    return found.reshape(batch, height, width, 2)


@compiled_when_repeated
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """``input`` [batch, channels, H, W] at the points (x, y) of ``grid`` [batch, h, w, 2], which run from -1 to 1.

    ``mode`` is ``bilinear`` or ``nearest``; ``padding_mode`` says what lies outside: ``zeros``, ``border`` (the edge
    repeated) or ``reflection``. The grid's gradient of ``nearest`` is 0.
    """
    if mode not in ("bilinear", "nearest") or padding_mode not in ("zeros", "border", "reflection"):
        raise AttributeValueError(f"grid_sample: mode {mode!r} or padding_mode {padding_mode!r} is not known")
    if len(input.shape) != 4 or len(grid.shape) != 4 or grid.shape[-1] != 2 or input.shape[0] != grid.shape[0]:
        raise ShapeError(f"grid_sample: input {list(input.shape)} and grid {list(grid.shape)} do not fit")
    height, width = input.shape[2:]
    corners = bool(align_corners)
    x = _pixels(grid[..., 0], width, padding_mode, corners)
    y = _pixels(grid[..., 1], height, padding_mode, corners)
    if mode == "nearest":
        rows, columns = mathematics.round(y), mathematics.round(x)
        found = _taken(input, rows, columns)
        if not (grid.requires_grad and is_grad_enabled()):
            return found
        # Never chosen: it is what makes the result depend on the grid, with a gradient of 0.
        return ew.where(ew.gt(columns, math.inf).unsqueeze(1), columns.unsqueeze(1), found)
    left, top = mathematics.floor(x), mathematics.floor(y)
    right_share, low_share = ew.sub(x, left.detach()).unsqueeze(1), ew.sub(y, top.detach()).unsqueeze(1)
    result: Any = None
    for dy, wy in ((0, ew.sub(1.0, low_share)), (1, low_share)):
        for dx, wx in ((0, ew.sub(1.0, right_share)), (1, right_share)):
            part = ew.mul(_taken(input, ew.add(top, dy), ew.add(left, dx)), ew.mul(wy, wx))
            result = part if result is None else ew.add(result, part)
    return result


def _pixels(points: Tensor, extent: int, padding_mode: str, corners: bool) -> Tensor:
    """Coordinates from -1 to 1 as positions of pixels, brought inside as ``padding_mode`` says."""
    shifted = ew.add(points, 1.0)
    if corners:
        places = ew.mul(shifted, (extent - 1) / 2)
    else:
        # In f64 and rounded once, like PyTorch's multiply-add: positions in large images have few digits to lose.
        wide = ew.sub(ew.mul(ew.cast(shifted, dtype=float64), extent / 2), 0.5)
        places = ew.cast(wide, dtype=points.dtype)
    if padding_mode == "reflection":
        low, span = (0.0, extent - 1.0) if corners else (-0.5, float(extent))
        places = _reflected(places, low, span)
    if padding_mode == "zeros":
        return places
    # Not clamp: on the border the gradient is 0.
    last = extent - 1.0
    return ew.where(ew.gt(places, 0), ew.where(ew.lt(places, last), places, last), 0.0)


def _reflected(places: Tensor, low: float, span: float) -> Tensor:
    if span <= 0:
        return ew.mul(places, 0.0)
    away = ew.sub(places, low)
    away = ew.where(ew.lt(away, 0), ew.neg(away), away)
    turns = mathematics.trunc(ew.mul(away, 0.5 / span))
    rest = ew.sub(away, ew.mul(turns, 2 * span))
    return ew.add(ew.where(ew.gt(rest, span), ew.sub(2 * span, rest), rest), low)


def _taken(input: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """[batch, channels, h, w]: the pixels at whole positions, 0 outside."""
    batch, channels, height, width = input.shape
    inside = ew.logical_and(
        ew.logical_and(ew.ge(y, 0), ew.le(y, height - 1.0)), ew.logical_and(ew.ge(x, 0), ew.le(x, width - 1.0))
    )
    row = composite.clamp(y, 0, height - 1).to(int64)
    column = composite.clamp(x, 0, width - 1).to(int64)
    image = ew.mul(index.iota(shape=(batch, 1, 1), axis=0), height * width)
    places = ew.add(ew.add(ew.mul(row, width), column), image)
    flat = input.permute(0, 2, 3, 1).reshape(batch * height * width, channels)
    found = index.gather(flat, places, axis=0).permute(0, 3, 1, 2)
    return ew.where(inside.unsqueeze(1), found, 0)
