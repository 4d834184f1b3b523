"""Steps of several ranks as events of the Chrome trace format, which chrome://tracing and Perfetto show."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
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


# ---- a picture

_WIDTH, _HEIGHT, _LEFT, _GAP = 900, 18, 130, 6
"""Pixels: of the time, of a row, of the names, between rows."""
_COLOURS = {"compute": "#7aa6c2", "wait": "#d9d9d9", "reduce": "#e08e45"}


def picture(name: str, ranks: Sequence[dict[str, Any]]) -> str:
    """Draw the step as an SVG, with a row for the computing and one for the reducing thread of each rank."""
    zero = min(rank["begin"] for rank in ranks)
    last = max(rank["begin"] + rank["seconds"] for rank in ranks) - zero
    height = 40 + 2 * len(ranks) * (_HEIGHT + _GAP)
    size = f'width="{_LEFT + _WIDTH + 10}" height="{height}"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">']
    lines.append(f'<text x="4" y="16">{escape(name)}: a step of {1e3 * last:.4g} ms on {len(ranks)} ranks</text>')
    for number, rank in enumerate(ranks):
        offset = rank["begin"] - zero
        for row, what in ((COMPUTE, "compute"), (REDUCTIONS, "reduce")):
            y = 26 + (2 * number + row) * (_HEIGHT + _GAP)
            lines.append(f'<text x="4" y="{y + 13}">rank {number}, {what}</text>')
        for row, title, begin, end in pieces(rank):
            kind = "wait" if title.startswith("wait") else "reduce" if row == REDUCTIONS else "compute"
            x, width = (_WIDTH * t / last for t in (begin + offset, end - begin))
            y = 26 + (2 * number + row) * (_HEIGHT + _GAP)
            box = f'x="{_LEFT + x:.1f}" y="{y}" width="{max(width, 0.5):.1f}" height="{_HEIGHT}"'
            lines.append(f'<rect {box} fill="{_COLOURS[kind]}"><title>{escape(title)}</title></rect>')
    return "\n".join([*lines, "</svg>", ""])
