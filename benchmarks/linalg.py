"""Factors and solutions beside PyTorch's and numpy's, on one thread: ``python -m benchmarks.linalg``.

Each case is one function of one size, compiled. ``--write`` replaces the table in docs/linalg.md.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np

import graphc as gc
from benchmarks.harness.results import Result
from benchmarks.harness.sweep import Sweep, limited_torch
from benchmarks.harness.timing import Call, Makers

FUNCTIONS = ("cholesky", "solve", "inv", "slogdet", "qr", "eigh", "svd")
_SIZES = ((1, 3), (1, 6), (1000, 6), (1000, 8), (1000, 12), (100, 32), (1, 32), (1, 64), (1, 256))
"""(matrices, rows) of each."""
Case = tuple[str, int, int]


def _operands(name: str, batch: int, n: int) -> list[np.ndarray]:
    random = np.random.default_rng(n)
    a = random.normal(size=(n, n) if batch == 1 else (batch, n, n)).astype(np.float32)
    if name in ("cholesky", "eigh"):
        return [a @ a.swapaxes(-1, -2) + np.eye(n, dtype=np.float32)]
    return [a, a[..., :1].copy()] if name == "solve" else [a]


def _makers(case: Case, result: Result) -> Makers:
    name, operands = case[0], _operands(*case)

    def own() -> Call:
        return partial(gc.compile(getattr(gc.linalg, name)), *map(gc.tensor, operands))

    def torch() -> Call:
        library: ModuleType = limited_torch()
        return partial(getattr(library.linalg, name), *map(library.tensor, operands))

    return {"graphc": own, "torch": torch, "numpy": lambda: partial(getattr(np.linalg, name), *operands)}


SWEEP = Sweep(
    "benchmarks.linalg",
    __doc__,
    {f"{name} {f'{b:,} x ' if b > 1 else ''}{n}x{n}": (name, b, n) for name in FUNCTIONS for b, n in _SIZES},
    ("torch", "numpy"),
    _makers,
    compare=False,  # signs of vectors differ from library to library
    seconds=0.02,
    unit_ms=1e-3,
    page=Path(__file__).parent.parent / "docs" / "linalg.md",
)

if __name__ == "__main__":
    sys.exit(SWEEP.main())
