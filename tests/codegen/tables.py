"""numpy's own tables of correctly rounded results, and distances between floats."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

TABLES = Path(np.__file__).parent / "_core" / "tests" / "data"


def table(name: str, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and results that numpy lists for a function of ``float32`` or ``float64``."""
    path = TABLES / f"umath-validation-set-{name}.csv"
    integer = {"float32": np.uint32, "float64": np.uint64}[dtype]
    with path.open() as file:
        lines = [line for line in file if line.startswith(f"np.{dtype}")]
    rows = [(int(row[1], 16), int(row[2], 16)) for row in csv.reader(lines)]
    inputs, outputs = (np.array(column, dtype=integer) for column in zip(*rows, strict=True))
    return inputs.view(dtype), outputs.view(dtype)


def bit_distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the number of floats between a and b; NaN is at distance 0 from NaN and infinitely far from all others."""
    integer = np.dtype(f"i{a.dtype.itemsize}")
    low = np.iinfo(integer).min
    ordered = [np.where(v.view(integer) < 0, low - v.view(integer), v.view(integer)) for v in (a, b)]
    distance = np.abs(ordered[0].astype(np.float64) - ordered[1].astype(np.float64))
    near = np.abs(distance) < 1e6
    distance[near] = np.abs(ordered[0][near] - ordered[1][near])
    both = np.isnan(a) & np.isnan(b)
    return np.where(np.isnan(a) | np.isnan(b), np.where(both, 0.0, np.inf), distance)
