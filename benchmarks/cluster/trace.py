"""Steps of several ranks as events of the Chrome trace format, which chrome://tracing and Perfetto show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.distributed.spans import REDUCE, START, WAIT

COMPUTE, REDUCTIONS = 0, 1
"""Rows of a rank: the computing thread, and the communicating one."""


def chrome_trace(name: str, ranks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the events of a step that all ranks have recorded (bucket_plan.recorded_step) on one clock, in
    microseconds from the first beginning. The format: Trace Event Format, Google, events of phase X (complete) and M
    (metadata)."""
    zero = min(rank["begin"] for rank in ranks)
    events: list[dict[str, Any]] = []
    for number, rank in enumerate(ranks):
        events += [_meta("process_name", number, 0, f"rank {number}: {name}")]
        events += [_meta("thread_name", number, COMPUTE, "compute"), _meta("thread_name", number, REDUCTIONS, "reduce")]
        offset = rank["begin"] - zero
        events += [_event(number, *piece, offset) for piece in pieces(rank)]
    return {"displayTimeUnit": "ms", "traceEvents": events}


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


def _event(rank: int, row: int, name: str, begin: float, end: float, offset: float) -> dict[str, Any]:
    spent = {"ts": round(1e6 * (begin + offset), 3), "dur": round(1e6 * (end - begin), 3)}
    return {"ph": "X", "name": name, "pid": rank, "tid": row, **spent}


def _meta(kind: str, rank: int, row: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": rank, "tid": row, "args": {"name": name}}
