"""When reductions were begun, done and waited for: recorded while somebody asks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

START, REDUCE, WAIT = "start", "reduce", "wait"
"""What a span is: a bucket is handed over, a thread reduces it, the thread that computes asks for the result."""
_spans: list[Span] | None = None


class Span(NamedTuple):
    """What one thread did for a while."""

    kind: str
    name: str
    """That of the bucket."""
    begin: float
    """Seconds of ``time.perf_counter``."""
    end: float
    nbytes: int


@contextmanager
def timeline() -> Iterator[list[Span]]:
    """While the block runs, what all threads of this process do for reductions is added to the list that it gives, each
    span at its end."""
    global _spans
    before, _spans = _spans, []
    try:
        yield _spans
    finally:
        _spans = before


def note(kind: str, name: str, begin: float, nbytes: int) -> None:
    """Adds what ends now, if somebody asks."""
    if _spans is not None:
        _spans.append(Span(kind, name, begin, time.perf_counter(), nbytes))
