"""Rules of ONNX operators that pool regions of images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.interop.onnx.ops.vision.places import linear_at, rows_at
from graphc.interop.onnx.registry import MICROSOFT, op
from graphc.interop.onnx.values import Value
from graphc.ops.selection import index
from graphc.tensors.tensor import Tensor


@op("MaxRoiPool")
def max_roi_pool(x: Tensor, rois: Tensor, *, pooled_shape: Sequence[int], spatial_scale: float = 1.0) -> Tensor:
    """Return maxima of the bins into which regions [batch item, x1, y1, x2, y2] are divided. Empty bins give 0."""
    count, item = rois.shape[0], rois[:, 0].to("int64")
    corners = (rois[:, 1:5] * spatial_scale + 0.5).floor()
    result = x.index_select(0, item)
    for axis, bins, first in ((2, pooled_shape[0], 1), (3, pooled_shape[1], 0)):
        size = x.shape[axis]
        start = corners[:, first].reshape(count, 1)
        extent = (corners[:, first + 2].reshape(count, 1) - start + 1.0).clamp(min=1.0)
        bin_index = index.iota(shape=(1, bins), axis=1).to(rois.dtype)
        low = ((bin_index * extent / bins).floor() + start).clamp(0.0, size)
        high = (((bin_index + 1.0) * extent / bins).ceil() + start).clamp(0.0, size)
        position = index.iota(shape=(1, 1, size), axis=2).to(rois.dtype)
        inside = (position >= low.unsqueeze(2)) & (position < high.unsqueeze(2))
        mask = inside.reshape(count, 1, *((bins, size, 1) if axis == 2 else (1, bins, size)))
        result = result.unsqueeze(axis).where(mask, -math.inf).amax(axis + 1)
    return result.where(result > -math.inf, 0.0)


@op("RoiAlign", since=10, values=True)
def roi_align_old(
    x: Value,
    rois: Value,
    batch_indices: Value,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    """Compute RoiAlign before version 16, where pixel centres have integer coordinates."""
    size = (output_height, output_width)
    return _aligned(x, rois, batch_indices, mode, size, sampling_ratio, spatial_scale, 0.0)


@op("RoiAlign", since=16, values=True)
def roi_align(
    x: Value,
    rois: Value,
    batch_indices: Value,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    """Sample points inside the bins of regions [x1, y1, x2, y2]: means, or maxima of the weighted corners."""
    shift = 0.5 if coordinate_transformation_mode == "half_pixel" else 0.0
    size = (output_height, output_width)
    return _aligned(x, rois, batch_indices, mode, size, sampling_ratio, spatial_scale, shift)


def _aligned(
    x: Value, rois: Value, item: Value, mode: str, size: tuple[int, int], ratio: int, scale: float, shift: float
) -> Tensor:
    """Compute RoiAlign. A sampling ratio of 0 derives the number of points from the values of the regions."""
    corners = rois.tensor * scale - shift
    static_corners = rois.array * scale - shift if ratio <= 0 else None
    axes = [_points(corners, static_corners, axis, bins, ratio, shift) for axis, bins in ((1, size[0]), (0, size[1]))]
    (y, y_valid), (x_, x_valid) = axes
    count = y.shape[0]
    rows, columns = (size[0], y.shape[2]), (size[1], x_.shape[2])
    shape = (count, *rows, *columns)
    coordinates = [
        y.reshape(count, *rows, 1, 1).broadcast_to(*shape),
        x_.reshape(count, 1, 1, *columns).broadcast_to(*shape),
    ]
    valid = y_valid.reshape(-1, size[0], rows[1], 1, 1) & x_valid.reshape(-1, 1, 1, size[1], columns[1])
    sampled = _corners(x.tensor, coordinates, item.tensor.reshape(count, 1, 1, 1, 1), mode)
    if mode != "avg":
        return sampled.where(valid.unsqueeze(1), -math.inf).amax((3, 5))
    total = sampled.where(valid.unsqueeze(1), 0.0).sum((3, 5))
    number = valid.to(total.dtype).sum((2, 4)).clamp(min=1.0)
    return total / number.unsqueeze(1)


def _points(
    corners: Tensor, static_corners: np.ndarray | None, first: int, bins: int, ratio: int, shift: float
) -> tuple[Tensor, Tensor]:
    """Return [regions, bins, points] along one dimension, and which of the points a region has."""
    count = corners.shape[0]
    start, end = corners[:, first].reshape(count, 1, 1), corners[:, first + 2].reshape(count, 1, 1)
    extent = end - start if shift else (end - start).clamp(min=1.0)
    bin_size = extent / bins
    if static_corners is None:
        points, number = ratio, corners.new_full((count, 1, 1), float(ratio))
    else:
        spans = static_corners[:, first + 2] - static_corners[:, first]
        spans = spans if shift else np.maximum(spans, 1.0)
        points = max(int(np.ceil(spans / bins).max(initial=1.0)), 1)
        number = bin_size.ceil()
    bin_index = index.iota(shape=(1, bins, 1), axis=1).to(corners.dtype)
    point = index.iota(shape=(1, 1, points), axis=2).to(corners.dtype)
    coordinates = start + bin_index * bin_size + (point + 0.5) * bin_size / number
    return coordinates, (point < number).broadcast_to(count, bins, points)


def _corners(x: Tensor, coordinates: Sequence[Tensor], item: Tensor, mode: str) -> Tensor:
    """Return values at real coordinates. Elements more than one pixel outside are 0."""
    inside: Any = None
    clamped: list[Tensor] = []
    for coordinate, n in zip(coordinates, x.shape[2:], strict=True):
        within = (coordinate >= -1.0) & (coordinate <= n)
        inside = within if inside is None else inside & within
        clamped.append(coordinate.clamp(0.0, n - 1))
    if mode == "avg":
        sampled = linear_at(x, clamped, item, zeros=False)
    else:
        lows = [p.floor().detach() for p in clamped]
        sampled = None
        for dy in (0, 1):
            for dx in (0, 1):
                wy, wx = (
                    (p - low) if d else 1.0 - (p - low) for p, low, d in zip(clamped, lows, (dy, dx), strict=True)
                )
                value = rows_at(x, [lows[0] + dy, lows[1] + dx], item, zeros=False) * (wy * wx).unsqueeze(1)
                sampled = value if sampled is None else sampled.maximum(value)
        assert sampled is not None
    return sampled.where(inside.unsqueeze(1), 0.0)


@op("CropAndResize", domain=MICROSOFT, host="crop_size")
def crop_and_resize(
    x: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    crop_size: Sequence[int],
    *,
    extrapolation_value: float = 0.0,
    mode: str = "bilinear",
) -> Tensor:
    """Resize regions [y1, x1, y2, x2], in fractions of the image, to one size.

    Elements outside have the value ``extrapolation_value``.
    """
    count, shape = rois.shape[0], (rois.shape[0], *crop_size)
    coordinates, inside = [], None
    for axis, (n, target) in enumerate(zip(x.shape[2:], crop_size, strict=True)):
        start, end = rois[:, axis].reshape(count, 1, 1) * (n - 1), rois[:, axis + 2].reshape(count, 1, 1) * (n - 1)
        i = index.iota(shape=shape, axis=axis + 1).to(rois.dtype)
        coordinate = start + i * ((end - start) / (target - 1)) if target > 1 else i * 0.0 + (start + end) * 0.5
        within = (coordinate >= 0.0) & (coordinate <= n - 1)
        inside = within if inside is None else inside & within
        coordinates.append(coordinate)
    assert inside is not None
    item = batch_indices.reshape(count, 1, 1)
    if mode == "bilinear":
        sampled = linear_at(
            x, [p.clamp(0.0, n - 1) for p, n in zip(coordinates, x.shape[2:], strict=True)], item, zeros=False
        )
    else:
        sampled = rows_at(x, [p.round() for p in coordinates], item, zeros=False)
    return sampled.where(inside.unsqueeze(1), extrapolation_value)
