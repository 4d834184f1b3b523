"""Events of Chrome's trace format, which Perfetto and chrome://tracing show (Google, Trace Event Format)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphc.base.progress import Span


def complete(
    name: str, process: int, thread: int, begin: float, end: float, category: str = "", **args: Any
) -> dict[str, Any]:
    """Return an event of phase X (complete) from ``begin`` to ``end``, in seconds; the format has microseconds."""
    event: dict[str, Any] = {"ph": "X", "name": name, "pid": process, "tid": thread}
    start = round(1e6 * begin, 3)
    event |= {"ts": start, "dur": round(round(1e6 * end, 3) - start, 3)}
    return event | ({"cat": category} if category else {}) | ({"args": args} if args else {})


def named(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    """Return an event of phase M (metadata). ``kind`` is ``process_name`` or ``thread_name``."""
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def trace(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the trace of events, for JSON."""
    return {"displayTimeUnit": "ms", "traceEvents": list(events)}


def span_event(span: Span, process: int, zero: float) -> dict[str, Any]:
    """Return a span as an event; ``zero`` is the time in ``time.perf_counter`` at which the trace begins."""
    args = {**span.args, "bytes": span.nbytes} if span.nbytes else dict(span.args)
    return complete(span.name, process, span.thread, span.begin - zero, span.end - zero, span.kind, **args)
