"""Rules of ONNX operators that sample at grid points."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from graphc.base.errors import AttributeValueError
from graphc.interop.onnx.ops.vision.places import counting, linear_at, rows_at
from graphc.interop.onnx.registry import op
from graphc.nn import functional as F
from graphc.ops.selection import index
from graphc.tensors.creation import ones
from graphc.tensors.free_functions import matmul, stack
from graphc.tensors.tensor import Tensor

_MODES = {"bilinear": "linear", "bicubic": "cubic"}
"""Names of the modes in version 16."""
_KEYS = -0.75


@op("GridSample", since=16)
def grid_sample(
    x: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Tensor:
    """Sample ``x`` at points from -1 to 1, whose last coordinate belongs to the first spatial dimension."""
    kind = _MODES.get(mode, mode)
    if kind not in ("nearest", "linear", "cubic") or padding_mode not in ("zeros", "border", "reflection"):
        raise AttributeValueError(
            f"GridSample does not support mode {mode[:40]!r} with padding_mode {padding_mode[:40]!r}"
        )
    sizes, corners = x.shape[2:], bool(align_corners)
    if len(sizes) == 2 and kind != "cubic":
        return F.grid_sample(x, grid, "nearest" if kind == "nearest" else "bilinear", padding_mode, corners)
    points = [grid[..., len(sizes) - 1 - axis] for axis in range(len(sizes))]
    coordinates = [_pixels(p, n, corners) for p, n in zip(points, sizes, strict=True)]
    if kind == "nearest":
        coordinates = [p.round() for p in coordinates]
    coordinates = [
        _inside(p, n, padding_mode, corners, kind == "cubic") for p, n in zip(coordinates, sizes, strict=True)
    ]
    item = counting(x.shape[0], coordinates[0])
    if kind == "nearest":
        return rows_at(x, coordinates, item, padding_mode == "zeros")
    if kind == "linear":
        return linear_at(x, coordinates, item, padding_mode == "zeros")
    return _cubic_at(x, coordinates, item, padding_mode, corners)


def _pixels(points: Tensor, size: int, corners: bool) -> Tensor:
    return (points + 1.0) * ((size - 1) / 2) if corners else (points + 1.0) * (size / 2) - 0.5


def _inside(coordinates: Tensor, size: int, padding_mode: str, corners: bool, to_edges: bool = False) -> Tensor:
    """Move coordinates into the image as the mode says. With ``to_edges`` border pixels reach to their outer edges."""
    if padding_mode == "zeros":
        return coordinates
    low, span = (0.0, size - 1.0) if corners else (-0.5, size * 1.0)
    if padding_mode == "border":
        clamped = coordinates.clamp(0, size - 1)
        return (
            coordinates.where((coordinates >= low) & (coordinates <= low + span), clamped)
            if to_edges and not corners
            else clamped
        )
    distance = (coordinates - low).abs()
    periods = (distance / (2.0 * span)).floor()
    remainder = distance - periods * (2.0 * span)
    return remainder.where(remainder <= span, 2.0 * span - remainder) + low


def _cubic_at(x: Tensor, coordinates: Sequence[Tensor], item: Tensor, padding_mode: str, corners: bool) -> Tensor:
    """Interpolate ``x`` at real coordinates from the four elements around them in each dimension."""
    lows = [p.floor().detach() for p in coordinates]
    axes = []
    for coordinate, low, n in zip(coordinates, lows, x.shape[2:], strict=True):
        rows = [_inside(low + float(k), n, padding_mode, corners) for k in range(-1, 3)]
        axes.append(list(zip(rows, [_weight(coordinate - low - float(k)) for k in range(-1, 3)], strict=True)))
    total: Any = None
    for corner in itertools.product(*axes):
        weight: Any = 1.0
        for _, factor in corner:
            weight = factor * weight
        rows = [row.trunc() for row, _ in corner]
        term = rows_at(x, rows, item, padding_mode == "zeros") * weight.unsqueeze(1)
        total = term if total is None else total + term
    return total


def _weight(distance: Tensor) -> Tensor:
    """Return the weight of Keys' cubic convolution kernel at a distance."""
    x = distance.abs()
    near = ((x * (_KEYS + 2.0) - (_KEYS + 3.0)) * x) * x + 1.0
    far = ((x * _KEYS - 5.0 * _KEYS) * x + 8.0 * _KEYS) * x - 4.0 * _KEYS
    return near.where(x <= 1.0, far.where(x < 2.0, 0.0))


@op("AffineGrid", since=20, host="size")
def affine_grid(theta: Tensor, size: Sequence[Any], *, align_corners: int = 0) -> Tensor:
    """Return the grid points of the maps ``theta`` [batch, rank, rank + 1], for images [batch, channels, *spatial]."""
    spatial = tuple(size[2:])
    axes = []
    for axis, n in enumerate(spatial):
        i = index.iota(shape=spatial, axis=axis).to(theta.dtype)
        axes.append(i * (2.0 / max(n - 1, 1)) - 1.0 if align_corners else (i * 2.0 + 1.0) / n - 1.0)
    points = stack([*reversed(axes), ones(*spatial, dtype=theta.dtype)], -1)
    grid = matmul(points.reshape(1, -1, len(spatial) + 1), theta.transpose(1, 2))
    return grid.reshape(theta.shape[0], *spatial, len(spatial))
