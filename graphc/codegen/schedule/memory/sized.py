"""Arena offsets for temporaries of sizes known only at run time; temporaries live at the same time are disjoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import add, attrgetter, mul, sub
from typing import Any, NamedTuple

from graphc.base.sizes.named_dims import dimensions
from graphc.base.sizes.size import Dimension, Size, always, at, bounds, hint, terms
from graphc.codegen.machine.costs import MemoryCosts
from graphc.codegen.schedule.memory.liveness import Interval

Vector = tuple[int, ...]
"""A size as a linear combination: its coefficients of the monomials in the sizes of a program."""
_start = attrgetter("expected_start")


class _Extent(NamedTuple):
    """Position of a temporary in the arena: its exact and its expected start and end."""

    start: Vector
    end: Vector
    expected_start: int
    expected_end: int


class Placement:
    """Placer of temporaries, one after the other, at the lowest offset (for expected sizes) proven to be free."""

    def __init__(self, sizes: Mapping[str, Any], work: int = MemoryCosts().arena_proofs):
        monomials = list(dict.fromkeys(m for size in sizes.values() for m, _ in terms(size)))
        self._monomials = [Size(((monomial, 1),)) if monomial else 1 for monomial in monomials]
        self._expected = [hint(size) for size in self._monomials]
        self._examples = [[at(x, values) for x in self._monomials] for values in _examples(self._monomials)]
        self._sizes = {name: tuple(dict(terms(size)).get(m, 0) for m in monomials) for name, size in sizes.items()}
        self._free_of_signs = all(bounds(size)[0] >= 0 for size in self._monomials)
        self._proven: dict[Vector, bool] = {}
        self._work = work
        """Remaining budget for proofs; a fact without a proof counts as false."""
        self._neighbours: dict[str, list[str]] = {}
        """Names of the temporaries that are live at the same time, by name of the temporary."""
        self._starts: dict[str, Vector] = {}
        self._end: Vector = ()

    def place(self, ordered: Sequence[Interval]) -> tuple[dict[str, int], int]:
        """Place temporaries in this order; return the expected (offsets by name, size of the arena)."""
        if not self._neighbours:
            self._neighbours = _neighbours(ordered)
        placed: dict[str, _Extent] = {}
        for name in (i.storage.name for i in ordered):
            size = self._sizes[name]
            start = self._lowest([placed[other] for other in self._neighbours[name] if other in placed], size)
            end = _plus(start, size)
            placed[name] = _Extent(start, end, self._hint(start), self._hint(end))
        self._starts = {name: extent.start for name, extent in placed.items()}
        self._end = self._upper_bound([extent.end for extent in placed.values()])
        return {name: extent.expected_start for name, extent in placed.items()}, self._hint(self._end)

    def exact(self) -> tuple[dict[str, Any], Any]:
        """Return the exact (offsets by name, size of the arena) of the last placement, as sizes."""
        return {name: self._size(start) for name, start in self._starts.items()}, self._size(self._end)

    def bound(self) -> Any:
        """Return an upper bound of all sizes."""
        return self._size(self._upper_bound(list(self._sizes.values())))

    def _lowest(self, alive: Sequence[_Extent], size: Vector) -> Vector:
        expected = self._hint(size)
        for start, low in self._gaps(alive, expected):
            end, high = _plus(start, size), low + expected
            if all(
                (high <= p.expected_start and self._at_most(end, p.start))
                or (p.expected_end <= low and self._at_most(p.end, start))
                for p in alive
            ):
                return start
        return self._upper_bound([extent.end for extent in alive])

    def _gaps(self, alive: Sequence[_Extent], expected: int) -> Iterator[tuple[Vector, int]]:
        """Yield (start, expected start) of gaps of ``expected`` bytes, for expected sizes, the lowest first.

        Gaps start at 0 or at the end of a placed temporary.
        """
        starts: dict[int, dict[Vector, None]] = {0: {(0,) * len(self._monomials): None}}
        for extent in alive:
            starts.setdefault(extent.expected_end, {})[extent.end] = None
        reach, yielded = 0, -1
        for extent in sorted(alive, key=_start):
            if reach + expected <= extent.expected_start and yielded < reach:
                yield from ((start, reach) for start in starts[reach])
                yielded = reach
            reach = max(reach, extent.expected_end)
        if yielded < reach:
            yield from ((start, reach) for start in starts[reach])

    def _at_most(self, a: Vector, b: Vector) -> bool:
        """Check whether a <= b is proven for all sizes."""
        difference = tuple(map(sub, b, a))
        proven = self._proven.get(difference)
        if proven is None:
            proven = self._proven[difference] = self._is_never_negative(difference)
        return proven

    def _is_never_negative(self, vector: Vector) -> bool:
        if self._free_of_signs and min(vector, default=0) >= 0:
            return True
        # NOTE: a proof takes as long as a hundred examples, and most queries are false.
        if self._hint(vector) < 0 or any(sum(map(mul, vector, example)) < 0 for example in self._examples):
            return False
        count = sum(map(bool, vector))
        self._work -= count * count * count
        return self._work > 0 and always("<=", 0, self._size(vector))

    def _upper_bound(self, ends: Sequence[Vector]) -> Vector:
        """Return an upper bound of the ends: one of them if provable, else the maximum of each coefficient."""
        largest: list[Vector] = []
        for end in sorted(set(ends), key=self._hint, reverse=True):
            if not any(self._at_most(end, other) for other in largest):
                largest.append(end)
        merge = max if self._free_of_signs else sum
        return tuple(merge((0, *column)) for column in zip(*largest, strict=True)) or (0,) * len(self._monomials)

    def _hint(self, vector: Vector) -> int:
        return sum(map(mul, vector, self._expected))

    def _size(self, vector: Vector) -> Any:
        return sum(map(mul, self._monomials, vector))


def _examples(monomials: Sequence[Any]) -> list[dict[Dimension, int]]:
    """Return likely counterexamples: all dimensions at one end of their range, with at most one at the other end."""
    dims = dimensions(monomials).values()
    examples = []
    for others in ("low", "high"):
        ends = {d: getattr(d, others) for d in dims}
        examples.append(ends)
        examples += [{**ends, d: d.high if others == "low" else d.low} for d in dims]
    return examples


def _neighbours(intervals: Sequence[Interval]) -> dict[str, list[str]]:
    return {i.storage.name: [j.storage.name for j in intervals if j is not i and i.overlaps(j)] for i in intervals}


def _plus(a: Vector, b: Vector) -> Vector:
    return tuple(map(add, a, b))


def bound_of(sizes: Sequence[Any]) -> Any:
    """Return an upper bound of sizes: one of them if provable, else the maximum of each coefficient."""
    return Placement({str(i): size for i, size in enumerate(sizes)}).bound()
