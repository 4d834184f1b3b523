"""Images sampled at the points of a grid, and grids of affine maps."""

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
    """``input`` [batch, channels, H, W] at the points (x, y) of ``grid`` [batch, h, w, 2], which run from -1 to 1; or
    [batch, channels, D, H, W] at the points (x, y, z) of [batch, d, h, w, 3].

    ``mode`` is ``bilinear``, ``nearest`` or, of images, ``bicubic`` (Keys 1981, with -0.75); ``padding_mode`` says what
    lies outside: ``zeros``, ``border`` (the edge repeated) or ``reflection``. The grid's gradient of ``nearest`` is 0.
    """
    if mode not in ("bilinear", "nearest", "bicubic") or padding_mode not in ("zeros", "border", "reflection"):
        raise AttributeValueError(f"grid_sample: mode {mode!r} or padding_mode {padding_mode!r} is not known")
    rank = len(input.shape)
    fits = rank == len(grid.shape) and grid.shape[-1] == rank - 2 and input.shape[0] == grid.shape[0]
    if rank not in (4, 5) or not fits:
        raise ShapeError(f"grid_sample: input {list(input.shape)} and grid {list(grid.shape)} do not fit")
    if mode == "bicubic" and rank != 4:
        raise AttributeValueError("grid_sample: 'bicubic' takes images", remedy="'bilinear', or four dimensions")
    corners = bool(align_corners)
    # The last coordinate belongs to the first dimension.
    along = [(grid[..., -1 - axis], extent) for axis, extent in enumerate(input.shape[2:])]
    places = [_pixels(points, extent, corners) for points, extent in along]
    if mode == "bicubic":
        return _bicubic(input, places, padding_mode, corners)
    places = [_inside(p, extent, padding_mode, corners) for p, (_, extent) in zip(places, along, strict=True)]
    if mode == "bilinear":
        return _linear(input, places)
    nearest = [mathematics.round(p) for p in places]
    found = _taken(input, nearest)
    if not (grid.requires_grad and is_grad_enabled()):
        return found
    # Never chosen: it is what makes the result depend on the grid, with a gradient of 0.
    return ew.where(ew.gt(nearest[-1], math.inf).unsqueeze(1), nearest[-1].unsqueeze(1), found)


def _linear(input: Tensor, places: Sequence[Tensor]) -> Tensor:
    """Weighted means of the pixels at all corners around each place."""
    low = [mathematics.floor(p) for p in places]
    shares = [ew.sub(p, at.detach()).unsqueeze(1) for p, at in zip(places, low, strict=True)]
    sides = [((0, ew.sub(1.0, share)), (1, share)) for share in shares]
    return _weighted(input, [[(ew.add(at, d), w) for d, w in side] for at, side in zip(low, sides, strict=True)])


_CUBIC = -0.75
"""The derivative of the cubic kernel at 1, as PyTorch has it."""


def _bicubic(input: Tensor, places: Sequence[Tensor], padding_mode: str, corners: bool) -> Tensor:
    """Weighted means of the 4 by 4 pixels around each place, those outside as ``padding_mode`` says."""
    taps = []
    for place, extent in zip(places, input.shape[2:], strict=True):
        low = mathematics.floor(place).detach()
        share = ew.sub(place, low).unsqueeze(1)
        around = [_inside(ew.add(low, d), extent, padding_mode, corners) for d in (-1, 0, 1, 2)]
        taps.append(list(zip(around, _cubic_weights(share), strict=True)))
    return _weighted(input, taps)


def _cubic_weights(t: Any) -> list[Any]:
    """Weights of the pixels at -1, 0, 1 and 2 for a place at ``t`` between 0 and 1."""

    def near(x: Any) -> Any:
        return ew.add(ew.mul(ew.mul(ew.sub(ew.mul(x, _CUBIC + 2), _CUBIC + 3), x), x), 1.0)

    def far(x: Any) -> Any:
        inner = ew.add(ew.mul(ew.sub(ew.mul(x, _CUBIC), 5 * _CUBIC), x), 8 * _CUBIC)
        return ew.sub(ew.mul(inner, x), 4 * _CUBIC)

    rest = ew.sub(1.0, t)
    return [far(ew.add(t, 1.0)), near(t), near(rest), far(ew.add(rest, 1.0))]


def _weighted(input: Tensor, taps: Sequence[Sequence[tuple[Any, Any]]]) -> Tensor:
    """The sum over all choices of one (position, weight) for each dimension."""
    result: Any = None
    for choice in itertools.product(*taps):
        weight = functools.reduce(ew.mul, [w for _, w in choice])
        part = ew.mul(_taken(input, [place for place, _ in choice]), weight)
        result = part if result is None else ew.add(result, part)
    return result


def _pixels(points: Tensor, extent: int, corners: bool) -> Tensor:
    """Coordinates from -1 to 1 as positions of pixels."""
    shifted = ew.add(points, 1.0)
    if corners:
        return ew.mul(shifted, (extent - 1) / 2)
    # In f64 and rounded once, like PyTorch's multiply-add: positions in large images have few digits to lose.
    wide = ew.sub(ew.mul(ew.cast(shifted, dtype=float64), extent / 2), 0.5)
    return ew.cast(wide, dtype=points.dtype)


def _inside(places: Tensor, extent: int, padding_mode: str, corners: bool) -> Tensor:
    """Positions of pixels, brought inside as ``padding_mode`` says."""
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


def _taken(input: Tensor, places: Sequence[Tensor]) -> Tensor:
    """[batch, channels, ...]: the pixels at whole positions, one tensor of them for each dimension; 0 outside."""
    batch, channels, *extents = input.shape
    inside = [ew.logical_and(ew.ge(p, 0), ew.le(p, n - 1.0)) for p, n in zip(places, extents, strict=True)]
    flat_place: Any = None
    for place, extent in zip(places, extents, strict=True):
        whole = composite.clamp(place, 0, extent - 1).to(int64)
        flat_place = whole if flat_place is None else ew.add(ew.mul(flat_place, extent), whole)
    size, rank = math.prod(extents), len(extents)
    image = ew.mul(index.iota(shape=(batch, *(1,) * rank), axis=0), size)
    flat = input.permute(0, *range(2, rank + 2), 1).reshape(batch * size, channels)
    found = index.gather(flat, ew.add(flat_place, image), axis=0).permute(0, rank + 1, *range(1, rank + 1))
    return ew.where(functools.reduce(ew.logical_and, inside).unsqueeze(1), found, 0)
