"""ONNX operators that bring tensors to other sizes by interpolation, by cutting and by zeros."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, float32, float64, int64
from graphc.base.errors import AttributeValueError, ShapeError
from graphc.base.sizes.size import always, is_size
from graphc.interop.onnx.registry import op
from graphc.nn.functional.resampling import of_sizes
from graphc.nn.functional.vision import pad
from graphc.ops import index
from graphc.tensors.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Filter:
    """How elements between those of a dimension are found."""

    mode: str
    """``nearest``, ``linear`` or ``cubic``."""
    coordinates: str
    nearest: str = "round_prefer_floor"
    antialias: bool = False
    exclude_outside: bool = False
    cubic: float = -0.75
    """The parameter of Keys' kernel."""
    outside: float = 0.0
    """What stands outside for ``tf_crop_and_resize``."""

    def __post_init__(self) -> None:
        """Raises AttributeValueError for what ONNX does not know."""
        if self.mode not in ("nearest", "linear", "cubic"):
            raise AttributeValueError(f"Resize: mode {self.mode[:40]!r} is none of nearest, linear, cubic")
        if self.coordinates not in COORDINATES:
            raise AttributeValueError(f"Resize: coordinate_transformation_mode {self.coordinates[:40]!r} is not known")
        if self.nearest not in NEAREST:
            raise AttributeValueError(f"Resize: nearest_mode {self.nearest[:40]!r} is not known")


@dataclass(frozen=True, slots=True)
class Way:
    """From the size of one dimension to another."""

    size: Any
    wanted: Any
    width: Any
    """What is wanted before it is cut to a whole number."""
    scale: Any
    start: float = 0.0
    end: float = 1.0


def _of_corners(i: Tensor, way: Way) -> Tensor:
    return i * ((way.size - 1) / (way.width - 1)) if not always("==", way.wanted, 1) else i * 0.0


def _symmetric(i: Tensor, way: Way) -> Tensor:
    missing = 1.0 - way.wanted / (way.scale * way.size)
    return (i + 0.5) / way.scale - 0.5 + missing * (way.size / 2)


def _cropped(i: Tensor, way: Way) -> Tensor:
    last = way.size - 1
    if always("==", way.wanted, 1):
        return i * 0.0 + 0.5 * (way.start + way.end) * last
    return i * ((way.end - way.start) * last / (way.wanted - 1)) + way.start * last


COORDINATES: dict[str, Callable[[Tensor, Way], Tensor]] = {
    "half_pixel": lambda i, way: (i + 0.5) / way.scale - 0.5,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": lambda i, way: (i + 0.5) / way.scale - 0.5 if not always("==", way.wanted, 1) else i * 0.0,
    "align_corners": _of_corners,
    "asymmetric": lambda i, way: i / way.scale,
    "tf_half_pixel_for_nn": lambda i, way: (i + 0.5) / way.scale,
    "tf_crop_and_resize": _cropped,
}
"""Where elements of the result lie in the input, by mode."""
NEAREST: dict[str, Callable[[Tensor], Tensor]] = {
    "round_prefer_floor": lambda places: (places - 0.5).ceil(),
    "round_prefer_ceil": lambda places: (places + 0.5).floor(),
    "floor": lambda places: places.floor(),
    "ceil": lambda places: places.ceil(),
}


@op("Upsample", since=7)
def upsample(x: Tensor, *, mode: str = "nearest", scales: Sequence[float]) -> Tensor:
    return _resized(x, Filter(mode, "asymmetric", "floor"), None, scales)


@op("Upsample", since=9, host="scales")
@op("Resize", since=10, host="scales")
def resize_by_scales(x: Tensor, scales: Sequence[float], *, mode: str = "nearest") -> Tensor:
    """Version 10 and before: places are those of ``asymmetric``."""
    return _resized(x, Filter(mode, "asymmetric", "floor"), None, scales)


@op("Resize", since=11, host="roi scales sizes")
def resize(
    x: Tensor,
    roi: Sequence[float] | None = None,
    scales: Sequence[float] | None = None,
    sizes: Sequence[Any] | None = None,
    *,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Tensor:
    """One dimension after the other, each by a weighted sum of neighbours."""
    rank = len(x.shape)
    chosen = [a % rank for a in axes] if axes else list(range(rank))
    options = (bool(antialias), bool(exclude_outside), cubic_coeff_a, extrapolation_value)
    filtered = Filter(mode, coordinate_transformation_mode, nearest_mode, *options)
    if not sizes and not scales:
        raise AttributeValueError("Resize: neither scales nor sizes are given")
    if sizes:
        wanted, factors = _by_sizes(x, chosen, sizes, keep_aspect_ratio_policy)
    else:
        wanted, factors = None, list(scales or ())
    return _resized(x, filtered, wanted, factors, chosen, roi or None)


def _by_sizes(x: Tensor, axes: Sequence[int], sizes: Sequence[Any], policy: str) -> tuple[list[Any], list[Any]]:
    """The sizes and scales of these dimensions."""
    if len(sizes) != len(axes):
        raise ShapeError(f"Resize: {len(sizes)} sizes for {len(axes)} dimensions")
    scales = [wanted / x.shape[a] for a, wanted in zip(axes, sizes, strict=True)]
    if policy == "stretch":
        return list(sizes), scales
    if policy not in ("not_larger", "not_smaller"):
        raise AttributeValueError(f"Resize: keep_aspect_ratio_policy {policy[:40]!r} is not known")
    scale = min(scales) if policy == "not_larger" else max(scales)
    return [math.floor(scale * x.shape[a] + 0.5) for a in axes], [scale] * len(axes)


def _resized(
    x: Tensor,
    how: Filter,
    sizes: Sequence[Any] | None,
    scales: Sequence[Any],
    axes: Sequence[int] | None = None,
    roi: Sequence[float] | None = None,
) -> Tensor:
    axes = range(len(x.shape)) if axes is None else axes
    if len(scales) != len(axes):
        raise ShapeError(f"Resize: {len(scales)} scales for {len(axes)} dimensions")
    crops = how.coordinates == "tf_crop_and_resize" and roi is not None
    result = x if how.mode == "nearest" or x.dtype.is_floating_point else x.to(float32)
    for i, (axis, scale) in enumerate(zip(axes, scales, strict=True)):
        start, end = (roi[i], roi[len(axes) + i]) if crops and roi is not None else (0.0, 1.0)
        size = x.shape[axis]
        wanted = _size(size, scale * (end - start) if crops else scale) if sizes is None else sizes[i]
        width = size * scale if sizes is None and not crops else wanted
        if crops or not (always("==", wanted, size) and scale == 1.0):
            result = _along(result, axis, how, Way(size, wanted, width, scale, start, end))
    return result if result.dtype is x.dtype else _whole(result, x.dtype)


def _whole(x: Tensor, dtype: DType) -> Tensor:
    """Real numbers as the nearest whole ones of a type."""
    limits = np.iinfo(dtype.numpy)
    return x.round().clamp(float(limits.min), float(limits.max)).to(dtype)


def _size(size: Any, scale: float) -> Any:
    """floor(size * scale), rounded as numbers of 32 bits."""
    if is_size(size):
        whole, part = float(scale).as_integer_ratio()
        return size * whole // part
    return int(np.float32(size) * np.float32(scale))


def _along(x: Tensor, axis: int, how: Filter, way: Way) -> Tensor:
    """One dimension brought to another size."""
    times = _times(how, way)
    if times:
        spread = x.unsqueeze(axis + 1).broadcast_to(*x.shape[: axis + 1], times, *x.shape[axis + 1 :])
        return spread.reshape(*x.shape[:axis], way.wanted, *x.shape[axis + 1 :])
    taps = _taps(how, way)
    cropped = how.coordinates == "tf_crop_and_resize"

    def rows_and_weights() -> list[Tensor]:
        places = COORDINATES[how.coordinates](index.iota(shape=(way.wanted,), axis=0).to(float64), way)
        rows, weights = _neighbours(places, how, way, taps)
        inside = [(places >= 0.0) & (places <= way.size - 1)] if cropped else []
        return [*rows, *weights, *inside]

    found = of_sizes((way.size, way.wanted), rows_and_weights)
    count = len(taps) if how.mode != "nearest" else 1
    column = (-1, *(1,) * (len(x.shape) - axis - 1))
    total: Any = None
    for i in range(count):
        part = index.gather(x, found[i], axis=axis)
        if how.mode != "nearest":
            part = part * found[count + i].to(x.dtype).reshape(*column)
        total = part if total is None else total + part
    return total.where(found[-1].reshape(*column), how.outside) if cropped else total


def _times(how: Filter, way: Way) -> int:
    """How often each element is repeated, where the result is nothing but that; else 0."""
    if how.mode != "nearest" or is_size(way.scale) or not float(way.scale).is_integer():
        return 0
    halves = how.coordinates.startswith(("half_pixel", "pytorch")) and how.nearest.startswith("round")
    floors = how.coordinates in ("asymmetric", "tf_half_pixel_for_nn") and how.nearest == "floor"
    whole = always("==", way.wanted, way.size * int(way.scale))
    return int(way.scale) if whole and (halves or floors) else 0


def _taps(how: Filter, way: Way) -> Sequence[int]:
    """The neighbours that have weights, counted from the one at or before a place."""
    reach = {"nearest": 0, "linear": 1, "cubic": 2}[how.mode]
    if not how.antialias:
        return range(1 - reach, reach + 1)
    if is_size(way.size) or is_size(way.wanted):
        raise ShapeError("Resize: antialias for sizes that are not known when the model is traced")
    first = math.floor(-reach / min(way.scale, 1.0)) + 1
    return range(first, 2 - first)


def _neighbours(places: Tensor, how: Filter, way: Way, taps: Sequence[int]) -> tuple[list[Tensor], list[Tensor]]:
    """The elements around places, and their weights."""
    last = way.size - 1
    if how.mode == "nearest":
        return [NEAREST[how.nearest](places).to(int64).clamp(0, last)], []
    first = places.ceil() - 1.0
    share = places - first
    rows = [first.to(int64) + k for k in taps]
    kernel = _triangle if how.mode == "linear" else _keys
    narrow = min(way.scale, 1.0) if how.antialias else 1.0
    weights = [kernel(((share - float(k)) * narrow).abs(), how.cubic) for k in taps]
    if how.exclude_outside:
        weights = [w.where((row >= 0) & (row <= last), 0.0) for w, row in zip(weights, rows, strict=True)]
    if how.exclude_outside or how.antialias:
        total = weights[0]
        for weight in weights[1:]:
            total = total + weight
        weights = [w / total for w in weights]
    return [row.clamp(0, last) for row in rows], weights


def _triangle(x: Tensor, a: float) -> Tensor:
    return (1.0 - x).clamp(min=0.0)


def _keys(x: Tensor, a: float) -> Tensor:
    near = ((x * (a + 2.0) - (a + 3.0)) * x) * x + 1.0
    far = ((x * a - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    return near.where(x <= 1.0, far.where(x < 2.0, 0.0))


@op("CenterCropPad", since=18, host="shape")
def center_crop_pad(x: Tensor, shape: Sequence[Any], *, axes: Sequence[int] | None = None) -> Tensor:
    """The middle of each dimension, with zeros on both sides where it is shorter."""
    rank = len(x.shape)
    for axis, wanted in zip(axes or range(rank), shape, strict=True):
        axis = axis % rank
        missing = wanted - x.shape[axis]
        if missing < 0:
            x = x.narrow(axis, -missing // 2, wanted)
        elif missing > 0:
            x = pad(x, (0, 0) * (rank - 1 - axis) + (missing // 2, missing - missing // 2))
    return x
