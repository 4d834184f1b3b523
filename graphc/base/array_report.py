"""What is said of an array in logs and errors: element type, shape, range, and how much of it is no finite number."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphc.base.dtypes import dtype_of, numbers
from graphc.base.errors import DTypeError


class ArrayReport(NamedTuple):
    """What a log says of one array."""

    dtype: str
    shape: tuple[int, ...]
    low: float | None
    """The smallest finite element; None where there is none."""
    high: float | None
    nans: int
    infinities: int

    @property
    def is_finite(self) -> bool:
        """Whether there is neither a NaN nor an infinity."""
        return not (self.nans or self.infinities)

    def __str__(self) -> str:
        text = f"{self.dtype}[{','.join(map(str, self.shape))}]"
        if self.low is not None:
            text += f" {self.low:.4g}" if self.shape == () else f" {self.low:.4g}..{self.high:.4g}"
        counts = [f"{n} {what}" for n, what in ((self.nans, "NaN"), (self.infinities, "inf")) if n]
        return " ".join([text, *counts])

    def to_dict(self) -> dict[str, Any]:
        """As numbers and texts, for JSON."""
        return {**self._asdict(), "shape": list(self.shape)}


def report_of(array: np.ndarray) -> ArrayReport:
    """Type, shape, range, and counts of what is no finite number."""
    name, shape = _name(array.dtype), tuple(array.shape)
    array = numbers(array)
    if not array.size:
        return ArrayReport(name, shape, None, None, 0, 0)
    with np.errstate(all="ignore"):
        low, high = float(array.min()), float(array.max())
        # NOTE: a NaN anywhere is the least and the greatest element.
        if np.isfinite(low) and np.isfinite(high):
            return ArrayReport(name, shape, low, high, 0, 0)
        some = array[np.isfinite(array)]
        nans = int(np.count_nonzero(array != array))
    low, high = (float(some.min()), float(some.max())) if some.size else (None, None)
    return ArrayReport(name, shape, low, high, nans, array.size - some.size - nans)


def _name(dtype: np.dtype) -> str:
    try:
        return dtype_of(dtype).name
    except DTypeError:
        return str(dtype)
