"""Factors and solutions beside PyTorch's and numpy's, on one thread: ``python -m benchmarks.linalg``.

Each row is one function of one size, compiled; times are the least of rounds in which the three take turns. ``--write``
replaces the table in docs/linalg.md.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import graphc as gc
from benchmarks.harness.sweep import restart_on_one_thread
from graphc.errors import GraphcError

_ROUNDS = 15
_SECONDS = 0.004
"""Least seconds that one function runs in a round."""
_SIZES = ((1, 3), (1, 6), (1000, 6), (1000, 8), (1000, 12), (100, 32), (1, 32), (1, 64), (1, 256))
"""(matrices, rows) of each."""
_PAGE = Path(__file__).parent.parent / "docs" / "linalg.md"
_BEGIN, _END = "<!-- table of benchmarks.linalg -->", "<!-- end -->"


def _operands(batch: int, n: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(n)
    shape = (n, n) if batch == 1 else (batch, n, n)
    a = random.normal(size=shape).astype(np.float32)
    return {"a": a, "p": a @ a.swapaxes(-1, -2) + np.eye(n, dtype=np.float32), "b": a[..., :1].copy()}


def _best(calls: Sequence[Callable[[], Any]]) -> list[float]:
    """Return microseconds of each call: the least of rounds in which all take turns."""
    best = [float("inf")] * len(calls)
    for _ in range(_ROUNDS):
        for i, call in enumerate(calls):
            count, start = 0, time.perf_counter()
            while (spent := time.perf_counter() - start) < _SECONDS or not count:
                call()
                count += 1
            best[i] = min(best[i], 1e6 * spent / count)
    return best


def rows(names: Sequence[str], sizes: Sequence[tuple[int, int]]) -> list[str]:
    """Return lines of the table."""
    rows_ = []
    for name in names:
        operand_names = "p" if name in ("cholesky", "eigh") else "ab" if name == "solve" else "a"
        for batch, n in sizes:
            operands = [_operands(batch, n)[k] for k in operand_names]
            compiled = gc.compile(getattr(gc.linalg, name))
            ours, theirs = [gc.tensor(x) for x in operands], [torch.tensor(x) for x in operands]
            by_torch, by_numpy = (getattr(package.linalg, name) for package in (torch, np))
            calls = [partial(compiled, *ours), partial(by_torch, *theirs), partial(by_numpy, *operands)]
            try:
                us = _best(calls)
            except GraphcError as error:
                print(f"{name} {batch} x {n}: {error}", file=sys.stderr)
                continue
            size = f"{batch:,} x {n}x{n}" if batch > 1 else f"{n}x{n}"
            rows_.append(f"| {name} | {size} | {us[0]:.1f} | {us[1]:.1f} | {us[2]:.1f} | {us[1] / us[0]:.1f} |")
            print(rows_[-1], flush=True)
    return rows_


def main() -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--functions", default="cholesky,solve,inv,slogdet,qr,eigh,svd", help="functions, separated by commas"
    )
    parser.add_argument("--quick", action="store_true", help="take only two sizes")
    parser.add_argument("--write", action="store_true", help="write the table into docs/linalg.md")
    args = parser.parse_args()
    restart_on_one_thread("benchmarks.linalg")
    torch.set_num_threads(1)
    head = ["| function | matrices | graphc | torch | numpy | torch / graphc |", "|---|---|---|---|---|---|"]
    print("\n".join(head))
    lines = rows(args.functions.split(","), _SIZES[2:4] if args.quick else _SIZES)
    if args.write:
        text = _PAGE.read_text("utf-8")
        before, after = text.split(_BEGIN)[0], text.split(_END)[1]
        note = f"Microseconds, f32, one thread, {platform.machine()}, torch {torch.__version__.split('+')[0]}:"
        _PAGE.write_text("\n".join([f"{before}{_BEGIN}", note, "", *head, *lines, f"{_END}{after}"]), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
