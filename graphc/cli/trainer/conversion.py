"""How arrays of data become what an input takes: element type, range of pixels, dimensions of size 1, channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from graphc.base.dtypes import BY_NAME
from graphc.base.errors import ArgumentError, DTypeError, ShapeError
from graphc.base.sizes.size import bounds, is_size
from graphc.files.manifest import TensorSpec

BYTE_SCALE = 1 / 255
"""What bytes are multiplied by where a model takes floats: pixels become numbers from 0 to 1."""


@dataclass(frozen=True)
class Scaling:
    """What is done to numbers that become floats."""

    scale: float | None = None
    """A factor; None: BYTE_SCALE for bytes, 1 for all else."""
    mean: tuple[float, ...] = ()
    """Then subtracted: one number, or one for each channel."""
    std: tuple[float, ...] = ()
    """Then divided by."""

    def factor(self, dtype: np.dtype) -> float:
        """The factor for numbers of a type."""
        if self.scale is not None:
            return self.scale
        return BYTE_SCALE if dtype == np.uint8 else 1.0


@dataclass(frozen=True)
class Conversion:
    """From rows of an array to the rows of one input."""

    dtype: np.dtype
    sample: tuple[int, ...]
    """The shape of a sample as the input takes it."""
    channels_first: bool
    """Whether the last dimension of the data is the first one of the input."""
    factor: float
    scaling: Scaling
    notes: tuple[str, ...]
    """What is changed, for people."""

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """The rows as the input takes them."""
        found = np.moveaxis(rows, -1, 1) if self.channels_first else rows
        if self.dtype.kind == "f" and (self.factor != 1 or self.scaling.mean or self.scaling.std):
            found = found.astype(self.dtype) * self.dtype.type(self.factor)
            if self.scaling.mean:
                found = found - self._by_channel(self.scaling.mean)
            if self.scaling.std:
                found = found / self._by_channel(self.scaling.std)
        return np.ascontiguousarray(found, self.dtype).reshape(len(rows), *self.sample)

    def _by_channel(self, numbers: Sequence[float]) -> np.ndarray:
        array = np.array(numbers, self.dtype)
        return array if array.size == 1 else array.reshape(-1, *[1] * (len(self.sample) - 1))


def conversion(data: Any, spec: TensorSpec, scaling: Scaling, place: str) -> Conversion:
    """How the rows of ``data`` (an array, or what has its ``shape`` and ``dtype``) become those of an input, whose
    first dimension is the batch.

    Numbers keep their values: integers become wider ones and floats, bytes for floats are multiplied as ``scaling``
    says, integers become narrower where all of them fit. Dimensions of size 1 come and go, all but the first may become
    one, and channels move from the last place to the first. Raises ShapeError, DTypeError and ArgumentError.
    """
    wanted, notes = BY_NAME[spec.dtype].numpy, []
    if not data.shape:
        raise ShapeError(f"{place} is a single number, and {spec.name!r} takes one or more for each sample")
    _check_type(data, wanted, spec, place)
    factor = scaling.factor(data.dtype) if wanted.kind == "f" else 1.0
    if data.dtype != wanted:
        scaled = f", multiplied by {factor:.6g}" if factor != 1 else ""
        notes.append(f"{data.dtype.name} becomes {BY_NAME[spec.dtype].long_name}{scaled}")
    sample, last = _sample(tuple(data.shape[1:]), spec.shape[1:], spec, place)
    if sample != tuple(data.shape[1:]):
        notes.append(f"samples {list(data.shape[1:])} become {list(sample)}")
    for numbers in (scaling.mean, scaling.std):
        if wanted.kind == "f" and len(numbers) > 1 and (not sample or len(numbers) != sample[0]):
            raise ArgumentError(
                f"{len(numbers)} numbers for the {sample[0] if sample else 0} channels of {spec.name!r}"
            )
    return Conversion(wanted, sample, last, factor, scaling, tuple(f"{place}: {note}" for note in notes))


def _check_type(data: Any, wanted: np.dtype, spec: TensorSpec, place: str) -> None:
    kinds = {"f": "fiub", "i": "iub", "u": "iub", "b": "b"}
    if data.dtype.kind not in kinds.get(wanted.kind, ""):
        raise DTypeError(
            f"{place} holds {data.dtype.name}, and {spec.name!r} takes {BY_NAME[spec.dtype].long_name}",
            remedy=f"save array.astype(np.{BY_NAME[spec.dtype].long_name})",
        )
    if wanted.kind in "iu" and isinstance(data, np.ndarray) and data.size and not np.can_cast(data.dtype, wanted):
        limits, found = np.iinfo(wanted), (int(data.min()), int(data.max()))
        if found[0] < limits.min or found[1] > limits.max:
            raise DTypeError(
                f"{place} holds numbers from {found[0]} to {found[1]}, and {spec.name!r} takes {spec.dtype}"
            )


def _sample(
    found: tuple[int, ...], wanted: tuple[Any, ...], spec: TensorSpec, place: str
) -> tuple[tuple[int, ...], bool]:
    """The shape of a sample as the input takes it, and whether channels move to the front."""
    if _fits(found, wanted):
        return found, False
    moved = (found[-1], *found[:-1]) if len(found) == 3 else found
    if moved != found and _fits(moved, wanted):
        return moved, True
    if not any(is_size(n) for n in wanted):
        fixed = tuple(int(n) for n in wanted)
        same = [n for n in found if n != 1] == [n for n in fixed if n != 1]
        if prod(found) == prod(fixed) and (same or len(fixed) <= 1 or len(found) <= 1):
            return fixed, False
    raise ShapeError(
        f"a sample of {place} has the shape {list(found)}, and {spec.name!r} takes {list(map(str, wanted))}",
        remedy=f"samples of the shape {[str(n) for n in wanted]}",
    )


def _fits(found: tuple[int, ...], wanted: tuple[Any, ...]) -> bool:
    ranges = [bounds(n) for n in wanted]
    return len(found) == len(ranges) and all(low <= n <= high for n, (low, high) in zip(found, ranges, strict=True))
