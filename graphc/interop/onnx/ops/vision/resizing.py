"""Rules of ONNX operators that resize by interpolation, cropping and zero padding."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, float32, float64, int64
from graphc.base.errors import AttributeValueError, ShapeError
from graphc.base.records import dataclass
from graphc.base.sizes.size import Size, SizeNumber, always, is_size, larger
from graphc.interop.onnx.registry import op
from graphc.nn.functional.resampling import of_sizes
from graphc.nn.functional.vision import pad
from graphc.ops.selection import index
from graphc.tensors.tensor import Tensor


@dataclass(frozen=True)
class Filter:
    """Interpolation method."""

    mode: str
    """``nearest``, ``linear`` or ``cubic``."""
    coordinates: str
    nearest: str = "round_prefer_floor"
    antialias: bool = False
    exclude_outside: bool = False
    cubic: float = -0.75
    """Parameter of Keys' kernel."""
    outside: float = 0.0
    """Value of elements outside for ``tf_crop_and_resize``."""

    def __post_init__(self) -> None:
        """Raise AttributeValueError for modes that ONNX does not define."""
        if self.mode not in ("nearest", "linear", "cubic"):
            raise AttributeValueError(f"Resize: mode {self.mode[:40]!r} is not one of nearest, linear, cubic")
        if self.coordinates not in COORDINATES:
            raise AttributeValueError(f"Resize: coordinate_transformation_mode {self.coordinates[:40]!r} is not known")
        if self.nearest not in NEAREST:
            raise AttributeValueError(f"Resize: nearest_mode {self.nearest[:40]!r} is not known")


@dataclass(frozen=True)
class Scaling:
    """Change of the size of one dimension."""

    size: Any
    result_size: Any
    scale: Any
    start: float = 0.0
    end: float = 1.0


def _of_corners(i: Tensor, scaling: Scaling) -> Tensor:
    # NOTE: ONNX's evaluator divides by size * scale - 1, which may be a fraction; its text, PyTorch and ONNX Runtime by
    # the length of the result.
    return i * ((scaling.size - 1) / larger(scaling.result_size - 1, 1))


def _symmetric(i: Tensor, scaling: Scaling) -> Tensor:
    missing = 1.0 - scaling.result_size / (scaling.scale * scaling.size)
    return (i + 0.5) / scaling.scale - 0.5 + missing * (scaling.size / 2)


def _cropped(i: Tensor, scaling: Scaling) -> Tensor:
    last = scaling.size - 1
    if always("==", scaling.result_size, 1):
        return i * 0.0 + 0.5 * (scaling.start + scaling.end) * last
    return i * ((scaling.end - scaling.start) * last / (scaling.result_size - 1)) + scaling.start * last


COORDINATES: dict[str, Callable[[Tensor, Scaling], Tensor]] = {
    "half_pixel": lambda i, scaling: (i + 0.5) / scaling.scale - 0.5,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": lambda i, scaling: (
        (i + 0.5) / scaling.scale - 0.5 if not always("==", scaling.result_size, 1) else i * 0.0
    ),
    "align_corners": _of_corners,
    "asymmetric": lambda i, scaling: i / scaling.scale,
    "tf_half_pixel_for_nn": lambda i, scaling: (i + 0.5) / scaling.scale,
    "tf_crop_and_resize": _cropped,
}
"""Coordinate in the input of each element of the result, by mode."""
NEAREST: dict[str, Callable[[Tensor], Tensor]] = {
    "round_prefer_floor": lambda x: (x - 0.5).ceil(),
    "round_prefer_ceil": lambda x: (x + 0.5).floor(),
    "floor": lambda x: x.floor(),
    "ceil": lambda x: x.ceil(),
}


@op("Upsample", since=7)
def upsample(x: Tensor, *, mode: str = "nearest", scales: Sequence[float]) -> Tensor:
    return _resized(x, Filter(mode, "asymmetric", "floor"), None, scales)


@op("Upsample", since=9, host="scales")
@op("Resize", since=10, host="scales")
def resize_by_scales(x: Tensor, scales: Sequence[float], *, mode: str = "nearest") -> Tensor:
    """Resize in version 10 and before, with the coordinates of ``asymmetric``."""
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
    """Resize one dimension after the other, each by a weighted sum of neighbours."""
    rank = len(x.shape)
    chosen = [a % rank for a in axes] if axes else list(range(rank))
    options = (bool(antialias), bool(exclude_outside), cubic_coeff_a, extrapolation_value)
    method = Filter(mode, coordinate_transformation_mode, nearest_mode, *options)
    if not sizes and not scales:
        raise AttributeValueError("Resize: neither scales nor sizes are given")
    if sizes:
        result_sizes, factors = _by_sizes(x, chosen, sizes, keep_aspect_ratio_policy)
    else:
        result_sizes, factors = None, list(scales or ())
    return _resized(x, method, result_sizes, factors, chosen, roi or None)


def _by_sizes(x: Tensor, axes: Sequence[int], sizes: Sequence[Any], policy: str) -> tuple[list[Any], list[Any]]:
    """Return the sizes and scales of these dimensions."""
    if len(sizes) != len(axes):
        raise ShapeError(f"Resize: {len(sizes)} sizes for {len(axes)} dimensions")
    scales = [target / x.shape[a] for a, target in zip(axes, sizes, strict=True)]
    if policy == "stretch":
        return list(sizes), scales
    if policy not in ("not_larger", "not_smaller"):
        raise AttributeValueError(f"Resize: keep_aspect_ratio_policy {policy[:40]!r} is not known")
    scale = min(scales) if policy == "not_larger" else max(scales)
    return [math.floor(scale * x.shape[a] + 0.5) for a in axes], [scale] * len(axes)


def _resized(
    x: Tensor,
    method: Filter,
    sizes: Sequence[Any] | None,
    scales: Sequence[Any],
    axes: Sequence[int] | None = None,
    roi: Sequence[float] | None = None,
) -> Tensor:
    axes = range(len(x.shape)) if axes is None else axes
    if len(scales) != len(axes):
        raise ShapeError(f"Resize: {len(scales)} scales for {len(axes)} dimensions")
    crops = method.coordinates == "tf_crop_and_resize" and roi is not None
    result = x if method.mode == "nearest" or x.dtype.is_floating_point else x.to(float32)
    for i, (axis, scale) in enumerate(zip(axes, scales, strict=True)):
        start, end = (roi[i], roi[len(axes) + i]) if crops and roi is not None else (0.0, 1.0)
        size = x.shape[axis]
        target = _size(size, scale * (end - start) if crops else scale) if sizes is None else sizes[i]
        if crops or not (always("==", target, size) and scale == 1.0):
            result = _along(result, axis, method, Scaling(size, target, scale, start, end))
    return result if result.dtype is x.dtype else _rounded(result, x.dtype)


def _rounded(x: Tensor, dtype: DType) -> Tensor:
    """Round real numbers to the nearest integers of a type."""
    limits = np.iinfo(dtype.numpy)
    return x.round().clamp(float(limits.min), float(limits.max)).to(dtype)


def _size(size: Any, scale: float) -> Any:
    """Return floor(size * scale), computed in f32."""
    if is_size(size):
        numerator, denominator = float(scale).as_integer_ratio()
        return size * numerator // denominator
    return int(np.float32(size) * np.float32(scale))


def _along(x: Tensor, axis: int, method: Filter, scaling: Scaling) -> Tensor:
    """Resize one dimension."""
    times = _times(method, scaling)
    if times:
        spread = x.unsqueeze(axis + 1).broadcast_to(*x.shape[: axis + 1], times, *x.shape[axis + 1 :])
        return spread.reshape(*x.shape[:axis], scaling.result_size, *x.shape[axis + 1 :])
    taps = _taps(method, scaling)
    cropped = method.coordinates == "tf_crop_and_resize"

    def rows_and_weights() -> list[Tensor]:
        coordinates = COORDINATES[method.coordinates](
            index.iota(shape=(scaling.result_size,), axis=0).to(float64), scaling
        )
        rows, weights = _neighbours(coordinates, method, scaling, taps)
        inside = [(coordinates >= 0.0) & (coordinates <= scaling.size - 1)] if cropped else []
        return [*rows, *weights, *inside]

    neighbours = of_sizes((scaling.size, scaling.result_size), rows_and_weights)
    count = len(taps) if method.mode != "nearest" else 1
    column = (-1, *(1,) * (len(x.shape) - axis - 1))
    total: Any = None
    for i in range(count):
        term = index.gather(x, neighbours[i], axis=axis)
        if method.mode != "nearest":
            term = term * neighbours[count + i].to(x.dtype).reshape(*column)
        total = term if total is None else total + term
    return total.where(neighbours[-1].reshape(*column), method.outside) if cropped else total


def _times(method: Filter, scaling: Scaling) -> int:
    """Return how often each element repeats, where the result is a mere repetition; else 0."""
    if method.mode != "nearest" or type(scaling.scale) in (Size, SizeNumber) or scaling.scale % 1:
        return 0
    halves = method.coordinates.startswith(("half_pixel", "pytorch")) and method.nearest.startswith("round")
    floors = method.coordinates in ("asymmetric", "tf_half_pixel_for_nn") and method.nearest == "floor"
    is_multiple = always("==", scaling.result_size, scaling.size * int(scaling.scale))
    return int(scaling.scale) if is_multiple and (halves or floors) else 0


def _taps(method: Filter, scaling: Scaling) -> Sequence[int]:
    """Return the neighbours with weights, relative to the last element at or before a coordinate."""
    reach = {"nearest": 0, "linear": 1, "cubic": 2}[method.mode]
    if not method.antialias:
        return range(1 - reach, reach + 1)
    if is_size(scaling.size) or is_size(scaling.result_size):
        raise ShapeError("Resize: antialias needs static sizes")
    first = math.floor(-reach / min(scaling.scale, 1.0)) + 1
    return range(first, 2 - first)


def _neighbours(
    coordinates: Tensor, method: Filter, scaling: Scaling, taps: Sequence[int]
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the elements around coordinates, and their weights."""
    last = scaling.size - 1
    if method.mode == "nearest":
        return [NEAREST[method.nearest](coordinates).to(int64).clamp(0, last)], []
    first = coordinates.ceil() - 1.0
    fraction = coordinates - first
    rows = [first.to(int64) + k for k in taps]
    kernel = _triangle if method.mode == "linear" else _keys
    narrow = min(scaling.scale, 1.0) if method.antialias else 1.0
    weights = [kernel(((fraction - float(k)) * narrow).abs(), method.cubic) for k in taps]
    if method.exclude_outside:
        weights = [w.where((row >= 0) & (row <= last), 0.0) for w, row in zip(weights, rows, strict=True)]
    if method.exclude_outside or method.antialias:
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
    """Crop each dimension to its middle, or pad it with zeros on both sides."""
    rank = len(x.shape)
    for axis, target in zip(axes or range(rank), shape, strict=True):
        axis = axis % rank
        missing = target - x.shape[axis]
        if missing < 0:
            x = x.narrow(axis, -missing // 2, target)
        elif missing > 0:
            x = pad(x, (0, 0) * (rank - 1 - axis) + (missing // 2, missing - missing // 2))
    return x
