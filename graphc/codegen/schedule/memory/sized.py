"""Places in an arena for temporaries whose sizes are known at run time: those that live together share no byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import add, attrgetter, mul, sub
from typing import Any, NamedTuple

from graphc.base.sizes.named_dims import dimensions
from graphc.base.sizes.size import Dimension, Monomial, Size, always, at, bounds, hint, terms
from graphc.codegen.machine.costs import MemoryCosts
from graphc.codegen.schedule.memory.liveness import Interval

Vector = tuple[int, ...]
"""A size: coefficients of the parts of which the sizes of a program consist."""
_start = attrgetter("expected_start")


class _Place(NamedTuple):
    """Where a temporary lies."""

    start: Vector
    end: Vector
    expected_start: int
    expected_end: int


class Placement:
    """Places temporaries one after the other at the lowest place (for the expected sizes) that is proven to be free."""

    def __init__(self, sizes: Mapping[str, Any], work: int = MemoryCosts().arena_proofs):
        monomials = list(dict.fromkeys(m for size in sizes.values() for m, _ in terms(size)))
        self._parts = [_part(monomial) for monomial in monomials]
        self._expected = [hint(part) for part in self._parts]
        self._examples = [[at(part, sizes) for part in self._parts] for sizes in _examples(self._parts)]
        self._sizes = {name: tuple(dict(terms(size)).get(m, 0) for m in monomials) for name, size in sizes.items()}
        self._free_of_signs = all(bounds(part)[0] >= 0 for part in self._parts)
        self._proven: dict[Vector, bool] = {}
        self._work = work
        """How much may still be spent on proofs; what is not proven is taken not to hold."""
        self._beside: dict[str, list[str]] = {}
        """By name of each temporary those that live when it does."""
        self._starts: dict[str, Vector] = {}
        self._end: Vector = ()

    def place(self, ordered: Sequence[Interval]) -> tuple[dict[str, int], int]:
        """(offsets by name, size of the arena) that are expected."""
        if not self._beside:
            self._beside = _neighbours(ordered)
        placed: dict[str, _Place] = {}
        for name in (i.storage.name for i in ordered):
            size = self._sizes[name]
            start = self._lowest([placed[other] for other in self._beside[name] if other in placed], size)
            end = _plus(start, size)
            placed[name] = _Place(start, end, self._hint(start), self._hint(end))
        self._starts = {name: place.start for name, place in placed.items()}
        self._end = self._most([place.end for place in placed.values()])
        return {name: place.expected_start for name, place in placed.items()}, self._hint(self._end)

    def exact(self) -> tuple[dict[str, Any], Any]:
        """(offsets by name, size of the arena, which is no less than any end) of what was placed last."""
        return {name: self._size(start) for name, start in self._starts.items()}, self._size(self._end)

    def bound(self) -> Any:
        """What is no less than any of the sizes."""
        return self._size(self._most(list(self._sizes.values())))

    def _lowest(self, alive: Sequence[_Place], size: Vector) -> Vector:
        expected = self._hint(size)
        for start, low in self._gaps(alive, expected):
            end, high = _plus(start, size), low + expected
            if all(
                (high <= p.expected_start and self._at_most(end, p.start))
                or (p.expected_end <= low and self._at_most(p.end, start))
                for p in alive
            ):
                return start
        return self._most([place.end for place in alive])

    def _gaps(self, alive: Sequence[_Place], expected: int) -> Iterator[tuple[Vector, int]]:
        """Where so many bytes fit for the expected sizes, each with the place that is expected, the lowest first: at 0,
        and behind others."""
        starts: dict[int, dict[Vector, None]] = {0: {(0,) * len(self._parts): None}}
        for place in alive:
            starts.setdefault(place.expected_end, {})[place.end] = None
        reach, looked = 0, -1
        for place in sorted(alive, key=_start):
            if reach + expected <= place.expected_start and looked < reach:
                yield from ((start, reach) for start in starts[reach])
                looked = reach
            reach = max(reach, place.expected_end)
        if looked < reach:
            yield from ((start, reach) for start in starts[reach])

    def _at_most(self, a: Vector, b: Vector) -> bool:
        """Whether a <= b for all sizes."""
        difference = tuple(map(sub, b, a))
        known = self._proven.get(difference)
        if known is None:
            known = self._proven[difference] = self._is_never_negative(difference)
        return known

    def _is_never_negative(self, vector: Vector) -> bool:
        if self._free_of_signs and min(vector, default=0) >= 0:
            return True
        # NOTE: a proof takes as long as a hundred examples, and most of what is asked does not hold.
        if self._hint(vector) < 0 or any(sum(map(mul, vector, example)) < 0 for example in self._examples):
            return False
        count = sum(map(bool, vector))
        self._work -= count * count * count
        return self._work > 0 and always("<=", 0, self._size(vector))

    def _most(self, ends: Sequence[Vector]) -> Vector:
        """What is no less than any of the ends: one of them if that is proven, else the most of each of their parts."""
        largest: list[Vector] = []
        for end in sorted(set(ends), key=self._hint, reverse=True):
            if not any(self._at_most(end, other) for other in largest):
                largest.append(end)
        merge = max if self._free_of_signs else sum
        return tuple(merge((0, *column)) for column in zip(*largest, strict=True)) or (0,) * len(self._parts)

    def _hint(self, vector: Vector) -> int:
        return sum(map(mul, vector, self._expected))

    def _size(self, vector: Vector) -> Any:
        return sum(map(mul, self._parts, vector))


def _examples(parts: Sequence[Any]) -> list[dict[Dimension, int]]:
    """Sizes at which what does not hold for all is likely to fail: each dimension at one end, the others at one end."""
    known = dimensions(parts).values()
    found = []
    for others in ("low", "high"):
        ends = {d: getattr(d, others) for d in known}
        found.append(ends)
        found += [{**ends, d: d.high if others == "low" else d.low} for d in known]
    return found


def _neighbours(intervals: Sequence[Interval]) -> dict[str, list[str]]:
    return {i.storage.name: [j.storage.name for j in intervals if j is not i and i.overlaps(j)] for i in intervals}


def _plus(a: Vector, b: Vector) -> Vector:
    return tuple(map(add, a, b))


def _part(monomial: Monomial) -> Any:
    return Size(((monomial, 1),)) if monomial else 1


def bound_of(sizes: Sequence[Any]) -> Any:
    """A size that is no less than any of these: the most of each of their terms."""
    return Placement({str(i): size for i, size in enumerate(sizes)}).bound()
