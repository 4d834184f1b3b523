"""Liveness of temporaries: between which calls of a program each of them holds a value."""

from __future__ import annotations

from dataclasses import dataclass

from graphc.ir.kernel.repeat import live_spans
from graphc.ir.kernel.statements import Program, Storage


@dataclass(frozen=True)
class Interval:
    """A temporary and the calls (numbers, inclusive) between which its memory must be its own."""

    storage: Storage
    first: int
    last: int

    def overlaps(self, other: Interval) -> bool:
        """True when both hold a value at the same time."""
        return self.first <= other.last and other.first <= self.last


def intervals(program: Program) -> list[Interval]:
    """One interval per temporary that some call uses, in the order of first use."""
    spans = live_spans(program)
    found = [Interval(s, *spans[s.name]) for s in program.storages if s.cls == "temp" and s.name in spans]
    return sorted(found, key=lambda i: (i.first, i.storage.name))


def peak(live: list[Interval], sizes: dict[str, int]) -> int:
    """The largest sum of live bytes over the calls: no plan can need less."""
    events: list[tuple[int, int]] = []
    for interval in live:
        events.append((interval.first, sizes[interval.storage.name]))
        events.append((interval.last + 1, -sizes[interval.storage.name]))
    events.sort()
    best = current = 0
    for _, change in events:
        current += change
        best = max(best, current)
    return best
