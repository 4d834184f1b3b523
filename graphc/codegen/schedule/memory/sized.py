"""Places in an arena for temporaries whose sizes are known at run time: those that live together share no byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.base.size import Size, always, bounds, hint, is_size, terms
from graphc.codegen.schedule.memory.liveness import Interval


class Placement:
    """Places temporaries one after the other at the lowest place (for the expected sizes) that is proven to be free."""

    def __init__(self) -> None:
        self._proven: dict[Any, bool] = {}

    def place(self, ordered: Sequence[Interval], sizes: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """(offsets by name, size of the arena, which is no less than any end)."""
        placed: list[tuple[Interval, Any, Any]] = []
        for interval in ordered:
            size = sizes[interval.storage.name]
            alive = [(start, end) for other, start, end in placed if other.overlaps(interval)]
            start = self._lowest(alive, size)
            placed.append((interval, start, start + size))
        return {i.storage.name: start for i, start, _ in placed}, self._most([end for *_, end in placed])

    def _lowest(self, alive: Sequence[tuple[Any, Any]], size: Any) -> Any:
        starts = dict.fromkeys([0, *sorted((end for _, end in alive), key=hint)])
        for start in starts:
            if all(self._is_apart(start, start + size, *other) for other in alive):
                return start
        return self._most([end for _, end in alive])

    def _is_apart(self, start: Any, end: Any, other_start: Any, other_end: Any) -> bool:
        return self._at_most(end, other_start) or self._at_most(other_end, start)

    def _at_most(self, a: Any, b: Any) -> bool:
        """Whether a <= b for all sizes; which is asked for few differences, again and again."""
        difference = b - a
        if not is_size(difference):
            return difference >= 0
        if difference not in self._proven:
            self._proven[difference] = hint(difference) >= 0 and always("<=", 0, difference)
        return self._proven[difference]

    def _most(self, ends: Sequence[Any]) -> Any:
        """What is no less than any of the ends: one of them if that is proven, else the most of each of their terms."""
        largest: list[Any] = []
        for end in sorted(set(ends), key=hint, reverse=True):
            if not any(self._at_most(end, other) for other in largest):
                largest.append(end)
        return bound_of(largest)


def bound_of(sizes: Sequence[Any]) -> Any:
    """A size that is no less than any of these: the most of each of their terms."""
    largest: dict[Any, Any] = {}
    for size in sizes:
        for monomial, coefficient in terms(size):
            part = Size(((monomial, 1),)) if monomial else 1
            if bounds(part)[0] < 0:
                return sum(sizes)
            largest[monomial] = (part, max(largest.get(monomial, (part, 0))[1], coefficient))
    return sum(part * coefficient for part, coefficient in largest.values())
