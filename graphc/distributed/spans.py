"""Timeline of reductions: when they are started, run and waited for, recorded inside ``timeline()``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

__all__ = ["timeline"]

START, REDUCE, WAIT = "start", "reduce", "wait"
"""Kinds of spans: a bucket is queued, a thread reduces it, the computing thread waits for the result."""
_spans: list[Span] | None = None


class Span(NamedTuple):
    """Activity of one thread over a period."""

    kind: str
    name: str
    """Name of the bucket."""
    begin: float
    """Seconds of ``time.perf_counter``."""
    end: float
    nbytes: int


@contextmanager
def timeline() -> Iterator[list[Span]]:
    """Return a list that collects the spans of all threads of this process inside the block, each at its end."""
    global _spans
    before, _spans = _spans, []
    try:
        yield _spans
    finally:
        _spans = before


def note(kind: str, name: str, begin: float, nbytes: int) -> None:
    """Record a span that ends now, if a timeline is active."""
    if _spans is not None:
        _spans.append(Span(kind, name, begin, time.perf_counter(), nbytes))
