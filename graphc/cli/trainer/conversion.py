"""Conversion of data arrays to an input's type and shape: pixel scaling, dimensions of size 1, channel order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from graphc.base.dtypes import BY_NAME
from graphc.base.errors import ArgumentError, DTypeError, ShapeError
from graphc.base.records import dataclass
from graphc.base.sizes.size import bounds, is_size
from graphc.files.manifest import TensorSpec

BYTE_SCALE = 1 / 255
"""Default factor of bytes as floats: pixels become numbers from 0 to 1."""


@dataclass(frozen=True)
class Scaling:
    """Normalization of numbers that become floats: multiply, subtract, divide."""

    scale: float | None = None
    """Factor; None: BYTE_SCALE for bytes, 1 for other types."""
    mean: tuple[float, ...] = ()
    """Subtracted after scaling: one number, or one for each channel."""
    std: tuple[float, ...] = ()
    """Divisor after that: one number, or one for each channel."""

    def factor(self, dtype: np.dtype) -> float:
        """Return the factor for numbers of a type."""
        if self.scale is not None:
            return self.scale
        return BYTE_SCALE if dtype == np.uint8 else 1.0


@dataclass(frozen=True)
class Conversion:
    """Conversion of rows of an array to rows of one input."""

    dtype: np.dtype
    sample: tuple[int, ...]
    """Shape of a sample in the input."""
    channels_first: bool
    """Whether the last dimension of the data is the first of a sample."""
    factor: float
    scaling: Scaling
    notes: tuple[str, ...]
    """Messages about the changes."""

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Convert rows to [rows, *sample] of the input's type."""
        converted = np.moveaxis(rows, -1, 1) if self.channels_first else rows
        if self.dtype.kind == "f" and (self.factor != 1 or self.scaling.mean or self.scaling.std):
            converted = converted.astype(self.dtype) * self.dtype.type(self.factor)
            if self.scaling.mean:
                converted = converted - self._by_channel(self.scaling.mean)
            if self.scaling.std:
                converted = converted / self._by_channel(self.scaling.std)
        return np.ascontiguousarray(converted, self.dtype).reshape(len(rows), *self.sample)

    def _by_channel(self, numbers: Sequence[float]) -> np.ndarray:
        array = np.array(numbers, self.dtype)
        return array if array.size == 1 else array.reshape(-1, *[1] * (len(self.sample) - 1))


def conversion(data: Any, spec: TensorSpec, scaling: Scaling, source: str) -> Conversion:
    """Return the conversion of the rows of ``data`` to the rows of an input, whose first dimension is the batch.

    ``data`` is an array, or an object with ``shape`` and ``dtype``; ``source`` names it in messages. Numbers keep their
    values: integers may become wider integers or floats, and narrower integers if all of them fit. Bytes that become
    floats are scaled as ``scaling`` says. Dimensions of size 1 may appear and disappear, all dimensions except the
    first may be flattened, and channels may move from last to first. Raises ShapeError, DTypeError and ArgumentError.
    """
    dtype, notes = BY_NAME[spec.dtype].numpy, []
    if not data.shape:
        raise ShapeError(f"{source} is a single number, but {spec.name!r} needs one or more for each sample")
    _check_type(data, dtype, spec, source)
    factor = scaling.factor(data.dtype) if dtype.kind == "f" else 1.0
    if data.dtype != dtype:
        scaled = f", multiplied by {factor:.6g}" if factor != 1 else ""
        notes.append(f"{data.dtype.name} becomes {BY_NAME[spec.dtype].long_name}{scaled}")
    sample, last = _sample(tuple(data.shape[1:]), spec.shape[1:], spec, source)
    if sample != tuple(data.shape[1:]):
        notes.append(f"samples {list(data.shape[1:])} become {list(sample)}")
    for numbers in (scaling.mean, scaling.std):
        if dtype.kind == "f" and len(numbers) > 1 and (not sample or len(numbers) != sample[0]):
            raise ArgumentError(
                f"{len(numbers)} numbers for the {sample[0] if sample else 0} channels of {spec.name!r}"
            )
    return Conversion(dtype, sample, last, factor, scaling, tuple(f"{source}: {note}" for note in notes))


def _check_type(data: Any, dtype: np.dtype, spec: TensorSpec, source: str) -> None:
    kinds = {"f": "fiub", "i": "iub", "u": "iub", "b": "b"}
    if data.dtype.kind not in kinds.get(dtype.kind, ""):
        raise DTypeError(
            f"{source} holds {data.dtype.name}, but {spec.name!r} takes {BY_NAME[spec.dtype].long_name}",
            remedy=f"save array.astype(np.{BY_NAME[spec.dtype].long_name})",
        )
    if dtype.kind in "iu" and isinstance(data, np.ndarray) and data.size and not np.can_cast(data.dtype, dtype):
        limits, low, high = np.iinfo(dtype), int(data.min()), int(data.max())
        if low < limits.min or high > limits.max:
            raise DTypeError(f"{source} holds numbers from {low} to {high}, but {spec.name!r} takes {spec.dtype}")


def _sample(
    shape: tuple[int, ...], expected: tuple[Any, ...], spec: TensorSpec, source: str
) -> tuple[tuple[int, ...], bool]:
    """Return the shape of a sample in the input, and whether channels move to the front."""
    if _fits(shape, expected):
        return shape, False
    moved = (shape[-1], *shape[:-1]) if len(shape) == 3 else shape
    if moved != shape and _fits(moved, expected):
        return moved, True
    if not any(is_size(n) for n in expected):
        fixed = tuple(int(n) for n in expected)
        same = [n for n in shape if n != 1] == [n for n in fixed if n != 1]
        if prod(shape) == prod(fixed) and (same or len(fixed) <= 1 or len(shape) <= 1):
            return fixed, False
    raise ShapeError(
        f"a sample of {source} has the shape {list(shape)}, but {spec.name!r} takes {list(map(str, expected))}",
        remedy=f"pass samples of the shape {[str(n) for n in expected]}",
    )


def _fits(shape: tuple[int, ...], expected: tuple[Any, ...]) -> bool:
    ranges = [bounds(n) for n in expected]
    return len(shape) == len(ranges) and all(low <= n <= high for n, (low, high) in zip(shape, ranges, strict=True))
