"""ONNX operators that pool regions of images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.interop.onnx.ops.places import linear_at, rows_at
from graphc.interop.onnx.registry import MICROSOFT, op
from graphc.interop.onnx.values import Value
from graphc.ops import index
from graphc.tensors.tensor import Tensor


@op("MaxRoiPool")
def max_roi_pool(x: Tensor, rois: Tensor, *, pooled_shape: Sequence[int], spatial_scale: float = 1.0) -> Tensor:
    """Maxima of the parts into which regions [batch item, x1, y1, x2, y2] are divided; 0 for parts without elements."""
    count, item = rois.shape[0], rois[:, 0].to("int64")
    corners = (rois[:, 1:5] * spatial_scale + 0.5).floor()
    found = x.index_select(0, item)
    for axis, parts, first in ((2, pooled_shape[0], 1), (3, pooled_shape[1], 0)):
        size = x.shape[axis]
        start = corners[:, first].reshape(count, 1)
        extent = (corners[:, first + 2].reshape(count, 1) - start + 1.0).clamp(min=1.0)
        part = index.iota(shape=(1, parts), axis=1).to(rois.dtype)
        low = ((part * extent / parts).floor() + start).clamp(0.0, size)
        high = (((part + 1.0) * extent / parts).ceil() + start).clamp(0.0, size)
        place = index.iota(shape=(1, 1, size), axis=2).to(rois.dtype)
        inside = (place >= low.unsqueeze(2)) & (place < high.unsqueeze(2))
        mask = inside.reshape(count, 1, *((parts, size, 1) if axis == 2 else (1, parts, size)))
        found = found.unsqueeze(axis).where(mask, -math.inf).amax(axis + 1)
    return found.where(found > -math.inf, 0.0)


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
    """Before version 16 the centres of pixels are at whole numbers."""
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
    """Means, or maxima of the weighted corners, of points inside of the parts of regions [x1, y1, x2, y2]."""
    shift = 0.5 if coordinate_transformation_mode == "half_pixel" else 0.0
    size = (output_height, output_width)
    return _aligned(x, rois, batch_indices, mode, size, sampling_ratio, spatial_scale, shift)


def _aligned(
    x: Value, rois: Value, item: Value, mode: str, size: tuple[int, int], ratio: int, scale: float, shift: float
) -> Tensor:
    """Where the sampling ratio is 0, the number of points follows from the regions, whose values it then asks for."""
    corners = rois.tensor * scale - shift
    known = rois.array * scale - shift if ratio <= 0 else None
    axes = [_points(corners, known, axis, parts, ratio, shift) for axis, parts in ((1, size[0]), (0, size[1]))]
    (y, y_there), (x_, x_there) = axes
    count = y.shape[0]
    rows, columns = (size[0], y.shape[2]), (size[1], x_.shape[2])
    shape = (count, *rows, *columns)
    places = [
        y.reshape(count, *rows, 1, 1).broadcast_to(*shape),
        x_.reshape(count, 1, 1, *columns).broadcast_to(*shape),
    ]
    there = y_there.reshape(-1, size[0], rows[1], 1, 1) & x_there.reshape(-1, 1, 1, size[1], columns[1])
    found = _corners(x.tensor, places, item.tensor.reshape(count, 1, 1, 1, 1), mode)
    if mode != "avg":
        return found.where(there.unsqueeze(1), -math.inf).amax((3, 5))
    total = found.where(there.unsqueeze(1), 0.0).sum((3, 5))
    number = there.to(total.dtype).sum((2, 4)).clamp(min=1.0)
    return total / number.unsqueeze(1)


def _points(
    corners: Tensor, known: np.ndarray | None, first: int, parts: int, ratio: int, shift: float
) -> tuple[Tensor, Tensor]:
    """[regions, parts, points] along one dimension, and which of the points a region has."""
    count = corners.shape[0]
    start, end = corners[:, first].reshape(count, 1, 1), corners[:, first + 2].reshape(count, 1, 1)
    extent = end - start if shift else (end - start).clamp(min=1.0)
    bins = extent / parts
    if known is None:
        points, number = ratio, corners.new_full((count, 1, 1), float(ratio))
    else:
        spans = known[:, first + 2] - known[:, first]
        spans = spans if shift else np.maximum(spans, 1.0)
        points = max(int(np.ceil(spans / parts).max(initial=1.0)), 1)
        number = bins.ceil()
    part = index.iota(shape=(1, parts, 1), axis=1).to(corners.dtype)
    point = index.iota(shape=(1, 1, points), axis=2).to(corners.dtype)
    places = start + part * bins + (point + 0.5) * bins / number
    return places, (point < number).broadcast_to(count, parts, points)


def _corners(x: Tensor, places: Sequence[Tensor], item: Tensor, mode: str) -> Tensor:
    """The values at real places; what lies more than one pixel outside is 0."""
    inside: Any = None
    kept: list[Tensor] = []
    for place, n in zip(places, x.shape[2:], strict=True):
        within = (place >= -1.0) & (place <= n)
        inside = within if inside is None else inside & within
        kept.append(place.clamp(0.0, n - 1))
    if mode == "avg":
        found = linear_at(x, kept, item, zeros=False)
    else:
        lows = [p.floor().detach() for p in kept]
        found = None
        for dy in (0, 1):
            for dx in (0, 1):
                wy, wx = ((p - low) if d else 1.0 - (p - low) for p, low, d in zip(kept, lows, (dy, dx), strict=True))
                value = rows_at(x, [lows[0] + dy, lows[1] + dx], item, zeros=False) * (wy * wx).unsqueeze(1)
                found = value if found is None else found.maximum(value)
        assert found is not None
    return found.where(inside.unsqueeze(1), 0.0)


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
    """Regions [y1, x1, y2, x2], in parts of the image, brought to one size; what lies outside has a value of its
    own."""
    count, shape = rois.shape[0], (rois.shape[0], *crop_size)
    places, inside = [], None
    for axis, (n, wanted) in enumerate(zip(x.shape[2:], crop_size, strict=True)):
        start, end = rois[:, axis].reshape(count, 1, 1) * (n - 1), rois[:, axis + 2].reshape(count, 1, 1) * (n - 1)
        i = index.iota(shape=shape, axis=axis + 1).to(rois.dtype)
        place = start + i * ((end - start) / (wanted - 1)) if wanted > 1 else i * 0.0 + (start + end) * 0.5
        within = (place >= 0.0) & (place <= n - 1)
        inside = within if inside is None else inside & within
        places.append(place)
    assert inside is not None
    item = batch_indices.reshape(count, 1, 1)
    if mode == "bilinear":
        found = linear_at(x, [p.clamp(0.0, n - 1) for p, n in zip(places, x.shape[2:], strict=True)], item, zeros=False)
    else:
        found = rows_at(x, [p.round() for p in places], item, zeros=False)
    return found.where(inside.unsqueeze(1), extrapolation_value)
