"""Steps of several ranks as events of the Chrome trace format, which chrome://tracing and Perfetto show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.distributed.spans import REDUCE, START, WAIT
from graphc.monitor.chrome_trace import complete, named, trace

COMPUTE, REDUCTIONS = 0, 1
"""Rows of a rank: the computing thread, and the communicating one."""
ROWS = {COMPUTE: "compute", REDUCTIONS: "reduce"}


def chrome_trace(name: str, ranks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the events of a step that all ranks have recorded (bucket_plan.recorded_step) on one clock, in
    microseconds from the first beginning."""
    zero = min(rank["begin"] for rank in ranks)
    events: list[dict[str, Any]] = []
    for number, rank in enumerate(ranks):
        events += [named("process_name", number, 0, f"rank {number}: {name}")]
        events += [named("thread_name", number, row, what) for row, what in ROWS.items()]
        offset = rank["begin"] - zero
        events += [complete(what, number, row, offset + begin, offset + end) for row, what, begin, end in pieces(rank)]
    return trace(events)


def pieces(rank: dict[str, Any]) -> list[tuple[int, str, float, float]]:
    """Return the row, name, beginning and end, in seconds, of each activity of a rank in a step; it computes between
    waits."""
    activities: list[tuple[int, str, float, float]] = []
    for bucket in rank["buckets"]:
        activities.append((REDUCTIONS, f"{bucket['name']}, {bucket['nbytes']} bytes", *bucket[REDUCE]))
    cuts = sorted([(*b[WAIT], f"wait for {b['name']}") for b in rank["buckets"]])
    starts = sorted(b[START][0] for b in rank["buckets"])
    at = 0.0
    for begin, end, what in [*cuts, (rank["seconds"], rank["seconds"], "")]:
        for stop in [*(s for s in starts if at < s < begin), begin]:
            activities.append((COMPUTE, "compute", at, stop))
            at = stop
        if what:
            activities.append((COMPUTE, what, begin, end))
        at = max(at, end)
    return [piece for piece in activities if piece[3] > piece[2]]
