"""Judge elementary functions by numpy's tables of correctly rounded results, in units of the last place."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

import graphc as gc
from tools.conformance.tally import Row, UnequalError

COLUMNS = {"eager": "values within numpy's bounds", "compiled": "the same by compiled code"}
_TABLES = Path(np.__file__).parent / "_core" / "tests" / "data"
_NAMES = {"arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan"} | {
    "arctanh": "atanh"
}
EXCLUDED = {"cbrt": "PyTorch has no cube root"}
"""Functions left out, with the reason."""


def standing() -> dict[str, str]:
    """Return ``mapped``, ``missing`` or the reason for leaving it out, for each function."""
    names = sorted(p.stem.rpartition("-")[2] for p in _TABLES.glob("umath-validation-set-*.csv"))
    return {n: EXCLUDED.get(n, "mapped" if hasattr(gc, _NAMES.get(n, n)) else "missing") for n in names}


def rows(subject: str, column: str) -> list[Row]:
    """Return the lines of a table: one sample each, for each type in which it is listed."""
    function = getattr(gc, _NAMES.get(subject, subject))
    run = gc.compile(function) if column == "compiled" else function
    samples = []
    for dtype in (np.float32, np.float64):
        inputs, expected, bound = table(subject, dtype)
        if not inputs.size:
            continue
        values = run(gc.from_numpy(inputs)).numpy()
        for x, distance in zip(inputs, distances(values, expected), strict=True):
            samples.append((f"{np.dtype(dtype).name} {subject}({x!r})", _within(float(distance), bound)))
    return samples


def _within(distance: float, bound: int) -> Row:
    def action() -> None:
        if distance > bound:
            raise UnequalError(f"{distance:.0f} units, numpy allows {bound}")

    return action  # type: ignore[return-value]


def table(name: str, dtype: type) -> tuple[np.ndarray, np.ndarray, int]:
    """Return inputs and results that numpy lists for a function, and how many units it lets a result be away."""
    path = _TABLES / f"umath-validation-set-{name}.csv"
    with path.open() as file:
        lines = [line for line in file if line.startswith(f"np.{np.dtype(dtype).name}")]
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    listed = [(int(row[1], 16), int(row[2], 16), int(row[3])) for row in csv.reader(lines)]
    inputs, outputs = (np.array([row[k] for row in listed], bits).view(dtype) for k in (0, 1))
    return inputs, outputs, max((row[2] for row in listed), default=0)


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Count the floats between a and b; NaN is at distance 0 from NaN and infinitely far from all others."""
    bits = np.dtype(f"i{a.dtype.itemsize}")
    low = np.iinfo(bits).min
    x, y = (np.where(v.view(bits) < 0, low - v.view(bits), v.view(bits)).astype(object) for v in (a, b))
    apart = np.abs(x - y).astype(np.float64)
    both = np.isnan(a) & np.isnan(b)
    return np.where(np.isnan(a) | np.isnan(b), np.where(both, 0.0, np.inf), apart)
