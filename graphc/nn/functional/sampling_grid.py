"""Sampling of images at the points of a grid, and grids of affine maps."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import float64, int64
from graphc.base.errors import AttributeValueError, ShapeError
from graphc.ops.contraction import matrix_product
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.selection import index
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tensors import composite
from graphc.tensors.placement import beside
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

__all__ = ["affine_grid", "grid_sample"]


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool = False) -> Tensor:
    """Return the points [batch, height, width, 2] of the maps ``theta`` [batch, 2, 3] for images of ``size``.

    ``size`` is [batch, channels, height, width]. Coordinates run from -1 to 1, which are the edges of the image, or
    with ``align_corners`` the centres of the corner pixels.
    """
    batch, _, height, width = size
    if tuple(theta.shape) != (batch, 2, 3):
        raise ShapeError(f"affine_grid: theta is {list(theta.shape)}, not {[batch, 2, 3]}")
    axes = []
    for n in (height, width):
        steps = np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1)
        axes.append(steps if align_corners or n < 2 else steps * (n - 1) / n)
    rows, columns = np.meshgrid(*axes, indexing="ij")
    points = np.stack([columns, rows, np.ones_like(rows)], -1).reshape(height * width, 3)
    mapped = matrix_product.matmul(
        beside(front().constant(points.astype(theta.dtype.numpy)), theta), theta, transpose_b=True
    )
    return mapped.reshape(batch, height, width, 2)


@compiled_when_repeated
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Sample ``input`` [batch, channels, H, W] at the points (x, y) of ``grid`` [batch, h, w, 2], from -1 to 1.

    Also samples [batch, channels, D, H, W] at the points (x, y, z) of [batch, d, h, w, 3]. ``mode`` is ``bilinear``,
    ``nearest`` or, for images, ``bicubic`` (Keys 1981, with -0.75). ``padding_mode`` defines the values outside:
    ``zeros``, ``border`` (the edge repeated) or ``reflection``. With ``nearest`` the grid's gradient is 0.
    """
    if mode not in ("bilinear", "nearest", "bicubic") or padding_mode not in ("zeros", "border", "reflection"):
        raise AttributeValueError(f"grid_sample: mode {mode!r} or padding_mode {padding_mode!r} is not known")
    rank = len(input.shape)
    fits = rank == len(grid.shape) and grid.shape[-1] == rank - 2 and input.shape[0] == grid.shape[0]
    if rank not in (4, 5) or not fits:
        raise ShapeError(f"grid_sample: input {list(input.shape)} and grid {list(grid.shape)} do not fit")
    if mode == "bicubic" and rank != 4:
        raise AttributeValueError(
            "grid_sample: mode 'bicubic' takes only images", remedy="use 'bilinear', or pass four dimensions"
        )
    corners = bool(align_corners)
    # The last coordinate belongs to the first dimension.
    along = [(grid[..., -1 - axis], extent) for axis, extent in enumerate(input.shape[2:])]
    positions = [_pixels(points, extent, corners) for points, extent in along]
    if mode == "bicubic":
        return _bicubic(input, positions, padding_mode, corners)
    positions = [_inside(p, extent, padding_mode, corners) for p, (_, extent) in zip(positions, along, strict=True)]
    if mode == "bilinear":
        return _linear(input, positions)
    nearest = [mathematics.round(p) for p in positions]
    pixels = _gathered(input, nearest)
    if not (grid.requires_grad and is_grad_enabled()):
        return pixels
    # The first branch is never chosen; it makes the result depend on the grid, with a gradient of 0.
    return ew.where(ew.gt(nearest[-1], math.inf).unsqueeze(1), nearest[-1].unsqueeze(1), pixels)


def _linear(input: Tensor, positions: Sequence[Tensor]) -> Tensor:
    """Compute weighted means of the pixels at all corners around each position."""
    corners = [mathematics.floor(p) for p in positions]
    fractions = [ew.sub(p, low.detach()).unsqueeze(1) for p, low in zip(positions, corners, strict=True)]
    sides = [((0, ew.sub(1.0, fraction)), (1, fraction)) for fraction in fractions]
    taps = [[(ew.add(low, d), w) for d, w in side] for low, side in zip(corners, sides, strict=True)]
    return _weighted(input, taps)


_CUBIC = -0.75
"""Derivative of the cubic kernel at 1, as in PyTorch."""


def _bicubic(input: Tensor, positions: Sequence[Tensor], padding_mode: str, corners: bool) -> Tensor:
    """Compute weighted means of the 4 by 4 pixels around each position; ``padding_mode`` defines those outside."""
    taps = []
    for position, extent in zip(positions, input.shape[2:], strict=True):
        low = mathematics.floor(position).detach()
        fraction = ew.sub(position, low).unsqueeze(1)
        around = [_inside(ew.add(low, d), extent, padding_mode, corners) for d in (-1, 0, 1, 2)]
        taps.append(list(zip(around, _cubic_weights(fraction), strict=True)))
    return _weighted(input, taps)


def _cubic_weights(t: Any) -> list[Any]:
    """Return the weights of the pixels at -1, 0, 1 and 2 for a position ``t`` between 0 and 1."""

    def near(x: Any) -> Any:
        return ew.add(ew.mul(ew.mul(ew.sub(ew.mul(x, _CUBIC + 2), _CUBIC + 3), x), x), 1.0)

    def far(x: Any) -> Any:
        inner = ew.add(ew.mul(ew.sub(ew.mul(x, _CUBIC), 5 * _CUBIC), x), 8 * _CUBIC)
        return ew.sub(ew.mul(inner, x), 4 * _CUBIC)

    rest = ew.sub(1.0, t)
    return [far(ew.add(t, 1.0)), near(t), near(rest), far(ew.add(rest, 1.0))]


def _weighted(input: Tensor, taps: Sequence[Sequence[tuple[Any, Any]]]) -> Tensor:
    """Sum over all choices of one (position, weight) per dimension."""
    result: Any = None
    for choice in itertools.product(*taps):
        weight = functools.reduce(ew.mul, [w for _, w in choice])
        term = ew.mul(_gathered(input, [position for position, _ in choice]), weight)
        result = term if result is None else ew.add(result, term)
    return result


def _pixels(points: Tensor, extent: int, corners: bool) -> Tensor:
    """Convert coordinates from -1 to 1 to positions of pixels."""
    shifted = ew.add(points, 1.0)
    if corners:
        return ew.mul(shifted, (extent - 1) / 2)
    # In f64 and rounded once, as PyTorch's multiply-add: positions in large images have few digits to lose.
    wide = ew.sub(ew.mul(ew.cast(shifted, dtype=float64), extent / 2), 0.5)
    return ew.cast(wide, dtype=points.dtype)


def _inside(positions: Tensor, extent: int, padding_mode: str, corners: bool) -> Tensor:
    """Bring positions of pixels inside as ``padding_mode`` says."""
    if padding_mode == "reflection":
        low, span = (0.0, extent - 1.0) if corners else (-0.5, float(extent))
        positions = _reflected(positions, low, span)
    if padding_mode == "zeros":
        return positions
    # Not clamp: on the border the gradient is 0.
    last = extent - 1.0
    return ew.where(ew.gt(positions, 0), ew.where(ew.lt(positions, last), positions, last), 0.0)


def _reflected(positions: Tensor, low: float, span: float) -> Tensor:
    if span <= 0:
        return ew.mul(positions, 0.0)
    distance = ew.sub(positions, low)
    distance = ew.where(ew.lt(distance, 0), ew.neg(distance), distance)
    periods = mathematics.trunc(ew.mul(distance, 0.5 / span))
    rest = ew.sub(distance, ew.mul(periods, 2 * span))
    return ew.add(ew.where(ew.gt(rest, span), ew.sub(2 * span, rest), rest), low)


def _gathered(input: Tensor, positions: Sequence[Tensor]) -> Tensor:
    """Gather the pixels at integral positions, one tensor of them per dimension; 0 outside.

    The result has shape [batch, channels, *positions].
    """
    batch, channels, *extents = input.shape
    inside = [ew.logical_and(ew.ge(p, 0), ew.le(p, n - 1.0)) for p, n in zip(positions, extents, strict=True)]
    flat_position: Any = None
    for position, extent in zip(positions, extents, strict=True):
        coordinate = composite.clamp(position, 0, extent - 1).to(int64)
        flat_position = coordinate if flat_position is None else ew.add(ew.mul(flat_position, extent), coordinate)
    size, rank = math.prod(extents), len(extents)
    image = ew.mul(index.iota(shape=(batch, *(1,) * rank), axis=0), size)
    flat = input.permute(0, *range(2, rank + 2), 1).reshape(batch * size, channels)
    pixels = index.gather(flat, ew.add(flat_position, image), axis=0).permute(0, rank + 1, *range(1, rank + 1))
    return ew.where(functools.reduce(ew.logical_and, inside).unsqueeze(1), pixels, 0)
