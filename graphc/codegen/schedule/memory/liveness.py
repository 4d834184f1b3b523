"""Liveness of temporaries: the first and last call between which each holds a value."""

from __future__ import annotations

from graphc.base.records import dataclass
from graphc.ir.kernel.repeat import live_spans
from graphc.ir.kernel.statements import Program, Storage


@dataclass(frozen=True)
class Interval:
    """Live range of a temporary: the numbers of the first and last call (inclusive) that need its memory."""

    storage: Storage
    first: int
    last: int

    def overlaps(self, other: Interval) -> bool:
        """Check whether both are live at the same time."""
        return self.first <= other.last and other.first <= self.last


def intervals(program: Program) -> list[Interval]:
    """Return one interval per used temporary, in the order of first use."""
    spans = live_spans(program)
    live = [Interval(s, *spans[s.name]) for s in program.storages if s.cls == "temp" and s.name in spans]
    return sorted(live, key=lambda i: (i.first, i.storage.name))


def peak(live: list[Interval], sizes: dict[str, int]) -> int:
    """Return the largest sum of live bytes over all calls, a lower bound for every plan."""
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
