"""Difference of two arrays, and whether it is within the tolerance of their element type."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from graphc.base.errors import ArgumentError


class Difference(NamedTuple):
    """Difference of two values with the same name, such as the outputs of a module in two models."""

    path: str
    module: str
    """Class of the module that returned the value; empty for other values."""
    shape: tuple[int, ...]
    absolute: float
    """Largest difference of two elements; infinity if only one of them is finite, or if shapes differ."""
    relative: float
    """``absolute`` divided by the largest element."""
    is_within: bool
    """Whether ``relative`` is within the tolerance."""
    is_equal: bool
    """Whether both have the same element type and the same bits."""

    def __str__(self) -> str:
        name = f"{self.path or '(model)'} ({self.module})" if self.module else self.path
        verdict = "" if self.is_within else "  <- differs"
        return f"{name:40} {list(self.shape)!s:18} {self.absolute:10.3g} {self.relative:10.3g}{verdict}"


def check_tolerance(tolerance: float | None) -> None:
    """Raise ArgumentError unless the tolerance is None or a number of at least 0."""
    if tolerance is not None and not (isinstance(tolerance, (int, float)) and tolerance >= 0):
        raise ArgumentError(
            f"tolerance must be a number of at least 0, got {tolerance!r}",
            remedy="pass 1e-4, or None for the default of each element type",
        )


def largest(array: np.ndarray) -> float:
    """Return the largest finite magnitude, or 0 if no element is finite."""
    floating = np.issubdtype(array.dtype, np.floating)
    finite = np.abs((array[np.isfinite(array)] if floating else array).astype(np.float64))
    return float(finite.max()) if finite.size else 0.0


def difference(
    path: str, module: str, a: np.ndarray, b: np.ndarray, tolerance: float | None, scale: float = 0.0
) -> Difference:
    """Compare two arrays.

    The default tolerance is 1e-10 if both are f64, 1e-4 for other floats, and 0 for integers. The relative difference
    is divided by the largest element of ``a`` or by ``scale``, whichever is larger.
    """
    if a.shape != b.shape:
        return Difference(path, module, a.shape, float("inf"), float("inf"), False, False)
    is_equal = a.dtype == b.dtype and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
    floating = np.issubdtype(a.dtype, np.floating) or np.issubdtype(b.dtype, np.floating)
    is_wide = a.dtype == b.dtype == np.float64
    limit = tolerance if tolerance is not None else (1e-10 if is_wide else 1e-4) if floating else 0.0
    same = (a == b) | (np.isnan(a) & np.isnan(b)) if floating else a == b
    if bool(np.all(same)):
        return Difference(path, module, a.shape, 0.0, 0.0, True, is_equal)
    with np.errstate(all="ignore"):
        distance = np.where(same, 0.0, np.abs(a.astype(np.float64) - b.astype(np.float64)))
    absolute = float(np.nan_to_num(distance, nan=np.inf, posinf=np.inf).max())
    most = max(largest(a), scale)
    relative = absolute / most if most else float("inf")
    return Difference(path, module, a.shape, absolute, relative, relative <= limit, is_equal)
