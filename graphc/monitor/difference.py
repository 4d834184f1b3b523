"""How far two arrays are apart, and whether that is within what element types explain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from graphc.base.errors import ArgumentError


class Difference(NamedTuple):
    """How two values of one name differ, such as the outputs of a module in two models."""

    path: str
    module: str
    """The class of the module that gave it; empty for other values."""
    shape: tuple[int, ...]
    absolute: float
    """The largest difference; infinity where only one of the two is a finite number, or shapes differ."""
    relative: float
    """That, divided by the largest element."""
    is_within: bool
    """Whether the relative one is within the tolerance."""
    is_equal: bool
    """Whether they have the same bits, and the same element type."""

    def __str__(self) -> str:
        name = f"{self.path or '(model)'} ({self.module})" if self.module else self.path
        verdict = "" if self.is_within else "  <- differs"
        return f"{name:40} {list(self.shape)!s:18} {self.absolute:10.3g} {self.relative:10.3g}{verdict}"


def check_tolerance(tolerance: float | None) -> None:
    """Raises ArgumentError for what no difference can be within."""
    if tolerance is not None and not (isinstance(tolerance, (int, float)) and tolerance >= 0):
        raise ArgumentError(
            f"tolerance must be a number from 0 on, got {tolerance!r}", remedy="1e-4, or None: by element type"
        )


def largest(array: np.ndarray) -> float:
    """The largest finite magnitude; 0 where there is none."""
    floating = np.issubdtype(array.dtype, np.floating)
    finite = np.abs((array[np.isfinite(array)] if floating else array).astype(np.float64))
    return float(finite.max()) if finite.size else 0.0


def difference(
    path: str, module: str, a: np.ndarray, b: np.ndarray, tolerance: float | None, scale: float = 0.0
) -> Difference:
    """Compares two arrays. The default tolerance is 1e-4 for f32, 1e-10 for f64, and 0 for whole numbers; ``scale`` is
    what differences are divided by where the largest element is less."""
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
        apart = np.where(same, 0.0, np.abs(a.astype(np.float64) - b.astype(np.float64)))
    absolute = float(np.nan_to_num(apart, nan=np.inf, posinf=np.inf).max())
    most = max(largest(a), scale)
    relative = absolute / most if most else float("inf")
    return Difference(path, module, a.shape, absolute, relative, relative <= limit, is_equal)
