"""Eager mode against eager PyTorch on one thread: 200 operator calls and 12 training loops, in alternating rounds."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import graphc
from benchmarks.harness.process import pin
from benchmarks.harness.sweep import torch_on_one_thread
from benchmarks.loop import make
from benchmarks.models import eager_calls, eager_loops

Call = Callable[[], Any]
WARM = 40
"""Uncounted first calls, enough for eager mode to fill its caches."""
WITHIN = 4.0
"""Allowed ratio of a call's time to torch's."""
LEAST_US = 5.0
"""or else how many microseconds, whatever torch takes."""


_BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def call_of(expression: str, lib: Any, size: str) -> Call:
    """Return one operator call of a framework."""
    names = {"lib": lib, "F": lib.nn.functional, **eager_calls.operands(lib, *eager_calls.SIZES[size])}
    return eval(f"lambda: {expression}", names)


def best_us(calls: dict[str, Call], rounds: int, seconds: float, warm: int = WARM) -> dict[str, float]:
    """Return the microseconds of each call: the minimum over alternating rounds of about ``seconds`` each."""
    counts = {}
    for who, call in calls.items():
        for _ in range(warm):
            call()
        counts[who] = max(1, int(seconds / max(min(_seconds(call, 1) for _ in range(5)), 1e-7)))
    times = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for who, call in calls.items():
            times[who] = min(times[who], _seconds(call, counts[who]) / counts[who] * 1e6)
    return times


def _seconds(call: Call, count: int) -> float:
    """Return time of the processor, of which others that use it take nothing."""
    start = time.process_time()
    for _ in range(count):
        call()
    return time.process_time() - start


def measured(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row for each selected call and loop."""
    torch = torch_on_one_thread()
    libraries = {"graphc": graphc, **({} if torch is None else {"torch": torch})}
    selected: list[tuple[str, str, dict[str, Call]]] = []
    if "calls" in options.what:
        for size in eager_calls.SIZES:
            for e in eager_calls.expressions():
                selected.append(("call", f"{size} {e}", {who: call_of(e, lib, size) for who, lib in libraries.items()}))
    if "loops" in options.what:
        for name in eager_loops.LOOPS:
            steps = {who: make(name, lib, False, eager_loops.LOOPS) for who, lib in libraries.items()}
            selected.append(("loop", name, steps))
    rows = []
    for kind, name, calls in selected:
        if options.only in name:
            times = best_us(calls, options.rounds, options.seconds * (5 if kind == "loop" else 1))
            rows.append({"kind": kind, "name": name, **times})
            if not options.json:
                print(line(rows[-1]), flush=True)
    return rows


def ratio(row: dict[str, Any]) -> float | None:
    """Return the ratio of graphc's time to torch's."""
    return row["graphc"] / row["torch"] if "torch" in row else None


def is_beyond(row: dict[str, Any]) -> bool:
    """Return whether graphc takes longer than it may."""
    return "torch" in row and row["graphc"] > max(WITHIN * row["torch"], LEAST_US)


def line(row: dict[str, Any]) -> str:
    """Return a row as text."""
    times_torch = ratio(row)
    peer = (
        ""
        if times_torch is None
        else f"  torch {row['torch']:9.1f} us  ratio {times_torch:6.2f}{' !' * is_beyond(row)}"
    )
    return f"{row['name']:48} graphc {row['graphc']:9.1f} us{peer}"


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the median and worst ratio, and the number of rows beyond the allowed ratio, of calls and of loops."""
    figures = {}
    for kind in ("call", "loop"):
        ratios = [(r, row["name"]) for row in rows if row["kind"] == kind and (r := ratio(row)) is not None]
        if ratios:
            worst, name = max(ratios)
            beyond = sum(is_beyond(row) for row in rows if row["kind"] == kind)
            median = statistics.median(r for r, _ in ratios)
            figures[kind] = {"rows": len(ratios), "median": median, "worst": worst, "which": name, "beyond": beyond}
    return figures


def main(argv: Sequence[str] | None = None) -> None:
    """Print a row for each call and loop: microseconds of both, their ratio; at the end median and worst ratio."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.eager", description=__doc__)
    parser.add_argument("--what", nargs="*", choices=["calls", "loops"], default=["calls", "loops"])
    parser.add_argument("--only", default="", metavar="TEXT", help="measure only rows whose name contains this")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--seconds", type=float, default=0.01, help="seconds per round of a call; loops take five times as long"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    if os.environ.get(_BLAS_THREADS) != "1":  # numpy's library reads it when it is loaded
        os.environ[_BLAS_THREADS] = "1"
        arguments = sys.argv[1:] if argv is None else argv
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.eager", *arguments])
    pin(1)
    rows = measured(options)
    figures = summary(rows)
    if options.json:
        print(json.dumps({"rows": rows, "summary": figures}, indent=1))
        return
    for kind, s in figures.items():
        worst = f"worst {s['worst']:.2f} ({s['which']})"
        print(f"{s['rows']} {kind}s: median {s['median']:.2f}, {worst}, {s['beyond']} beyond")


if __name__ == "__main__":
    main()
