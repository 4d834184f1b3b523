"""Eager mode against eager PyTorch: 200 operator calls and 12 training loops, in processor time, in turns."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import graphc
from benchmarks.harness.results import OWN, Result
from benchmarks.harness.sweep import Sweep, limited_torch
from benchmarks.harness.timing import Call, Makers
from benchmarks.loop import make
from benchmarks.models import eager_calls, small_loops

WITHIN = 4.0
"""Allowed ratio of a call's time to torch's."""
LEAST_US = 5.0
"""or else how many microseconds, whatever torch takes."""
LOOP = "loop "
"""Prefix of the names of loops."""


def call_of(expression: str, lib: Any, size: str) -> Call:
    names = {"lib": lib, "F": lib.nn.functional, **eager_calls.operands(lib, *eager_calls.SIZES[size])}
    return eval(f"lambda: {expression}", names)


def _make(name: str, own: bool) -> Call:
    lib = graphc if own else limited_torch()
    kind, _, rest = name.partition(" ")
    return make(rest, lib, False) if name.startswith(LOOP) else call_of(rest, lib, kind)


def _makers(name: str, result: Result) -> Makers:
    return {who: partial(_make, name, who == OWN) for who in (OWN, "torch")}


def _finish(name: str, result: Result) -> None:
    own, torch = result.ms(OWN), result.ms("torch")
    if own and torch:
        result.facts["beyond"] = "!" if 1000 * own > max(WITHIN * 1000 * torch, LEAST_US) else ""


def summary(results: Sequence[Result]) -> list[str]:
    """Describe the ratios of graphc's time to torch's, and the number of rows beyond the allowed ratio."""
    lines = []
    for loops in (False, True):
        rows = [r for r in results if r.name.startswith(LOOP) == loops]
        ratios = sorted((ratio, r.name) for r in rows if (ratio := r.over(OWN, "torch")) is not None)
        if ratios:
            worst, name = ratios[-1]
            beyond = sum(r.facts.get("beyond") == "!" for r in rows)
            median = statistics.median(ratio for ratio, _ in ratios)
            kind = "loops" if loops else "calls"
            lines.append(f"{len(ratios)} {kind}: median {median:.2f}, worst {worst:.2f} ({name}), {beyond} beyond")
    return lines


_CALLS = [f"{size} {e}" for size in eager_calls.SIZES for e in eager_calls.expressions()]
SWEEP = Sweep(
    "benchmarks.eager",
    __doc__,
    {name: name for name in (*_CALLS, *(LOOP + name for name in small_loops.EAGER))},
    ("torch",),
    _makers,
    ("beyond",),
    _finish,
    rounds=7,
    seconds=0.02,
    warm=40,
    unit_ms=1e-3,
    clock=time.process_time,
    compare=False,  # tests do
    notes=summary,
)

if __name__ == "__main__":
    sys.exit(SWEEP.main())
