"""Summaries of arrays for logs and errors: element type, shape, range, number of NaNs and infinities."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphc.base.dtypes import dtype_of, numbers
from graphc.base.errors import DTypeError


class ArrayReport(NamedTuple):
    """Summary of one array."""

    dtype: str
    shape: tuple[int, ...]
    low: float | None
    """The smallest finite element; None if no element is finite."""
    high: float | None
    nans: int
    infinities: int

    @property
    def is_finite(self) -> bool:
        """Return whether the array has neither NaNs nor infinities."""
        return not (self.nans or self.infinities)

    def __str__(self) -> str:
        text = f"{self.dtype}[{','.join(map(str, self.shape))}]"
        if self.low is not None:
            text += f" {self.low:.4g}" if self.shape == () else f" {self.low:.4g}..{self.high:.4g}"
        counts = [f"{n} {label}" for n, label in ((self.nans, "NaN"), (self.infinities, "inf")) if n]
        return " ".join([text, *counts])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values for JSON."""
        return {**self._asdict(), "shape": list(self.shape)}


def report_of(array: np.ndarray) -> ArrayReport:
    """Summarize an array in one pass, or in two if it has NaNs or infinities."""
    name, shape = _name(array.dtype), tuple(array.shape)
    array = numbers(array)
    if not array.size:
        return ArrayReport(name, shape, None, None, 0, 0)
    with np.errstate(all="ignore"):
        low, high = float(array.min()), float(array.max())
        # NOTE: min() and max() are NaN if any element is.
        if np.isfinite(low) and np.isfinite(high):
            return ArrayReport(name, shape, low, high, 0, 0)
        finite = array[np.isfinite(array)]
        nans = int(np.count_nonzero(array != array))
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (None, None)
    return ArrayReport(name, shape, low, high, nans, array.size - finite.size - nans)


def _name(dtype: np.dtype) -> str:
    try:
        return dtype_of(dtype).name
    except DTypeError:
        return str(dtype)
