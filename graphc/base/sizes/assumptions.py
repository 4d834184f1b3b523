"""What a trace assumes of sizes that are known at run time: answers for some sizes, each with the line that asked."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graphc.base.location import Location, capture
from graphc.base.sizes.size import Dimension, UndecidedSize, at, hint
from graphc.base.sizes.size_questions import asker

_RELATIONS = {"==": operator.eq, "<=": operator.le}
_OPPOSITE = {"==": "!=", "<=": ">"}


def is_so(relation: str, a: Any, b: Any, answer: bool, values: Mapping[Dimension, int]) -> bool:
    """Whether a relation of sizes is answered like that for these sizes of their dimensions."""
    return _RELATIONS[relation](at(a, values), at(b, values)) is answer


def told(relation: str, a: Any, b: Any, answer: bool, place: Location | str) -> str:
    """What was assumed and where, for people."""
    where = str(place)
    return f"{a} {relation if answer else _OPPOSITE[relation]} {b}" + (f" (asked at {where})" if where else "")


class Assumption(NamedTuple):
    """What a trace relies on: a relation of sizes, and whether it held."""

    relation: str
    a: Any
    b: Any
    answer: bool
    place: Location | str = ""
    """The line that asked; its text, where it comes from a file."""

    def holds(self, values: Mapping[Dimension, int]) -> bool:
        """Whether it is so for these sizes."""
        return is_so(self.relation, self.a, self.b, self.answer, values)

    @property
    def portable_place(self) -> str:
        """The line as a file names it, which says the same on every machine."""
        return str(self.place.portable if isinstance(self.place, Location) else self.place)

    def __str__(self) -> str:
        return told(*self)


class _Larger(dict[Dimension, int]):
    """Sizes of dimensions, at least 2 where they can be."""

    def __init__(self, sizes: Mapping[Dimension, int] | None):
        self._sizes = sizes

    def __missing__(self, dimension: Dimension) -> int:
        size = dimension.hint if self._sizes is None else self._sizes[dimension]
        return max(size, min(2, dimension.high))


@dataclass
class Assumptions:
    """What has been assumed so far, each once."""

    sizes: Mapping[Dimension, int] | None = None
    """The sizes for which questions are answered; None: the hints."""
    found: dict[tuple[str, Any, Any], Assumption] = field(default_factory=dict)

    def ask(self, relation: str, a: Any, b: Any) -> bool:
        """The answer for these sizes, which is assumed from now on."""
        key = (relation, a, b)
        known = self.found.get(key)
        if known is None:
            answer = _RELATIONS[relation](at(a, self.sizes), at(b, self.sizes))
            known = self.found[key] = Assumption(relation, a, b, answer, capture())
        return known.answer

    def value(self, size: Any) -> int:
        """The number that a size is for these sizes, which is assumed from now on."""
        value = at(size, self.sizes)
        self.ask("==", size, value)
        return value

    def expected(self, size: Any, exact: bool) -> int:
        """The number that a size is for these sizes, those of 1 as 2 where they can be unless ``exact``."""
        return at(size, self.sizes if exact else _Larger(self.sizes))

    def broken(self, values: Mapping[Dimension, int]) -> Assumption | None:
        """The first assumption that does not hold for these sizes."""
        return next((x for x in self.found.values() if not x.holds(values)), None)


class _Known:
    """Answers what has been assumed before, and nothing else."""

    def __init__(self, assumptions: Iterable[Assumption], values: Mapping[Dimension, Any]):
        self._answers = {
            (x.relation, at(x.b, values) - at(x.a, values)): x.answer  # type: ignore[arg-type]
            for x in assumptions
        }

    def ask(self, relation: str, a: Any, b: Any) -> bool:
        """The answer; UndecidedSize where it is not known, but that sizes are not equal where that is not known."""
        known = self._answers.get((relation, b - a))
        if known is None and relation == "==":
            return self._answers.get((relation, a - b), False)
        if known is None:
            raise UndecidedSize(f"{a} {relation} {b} depends on the sizes of a call")
        return known

    def value(self, size: Any) -> int:
        """The number that a size is assumed to be."""
        sums = (size + d for (relation, d), answer in self._answers.items() if relation == "==" and answer)
        found = next((n for n in sums if type(n) is int), None)
        if found is None:
            raise UndecidedSize(f"the size {size} is a number in calls only")
        return found

    def expected(self, size: Any, exact: bool) -> int:
        """A number that is like a size: for the hints."""
        return hint(size)


@contextmanager
def holding(assumptions: Iterable[Assumption], values: Mapping[Dimension, Any]) -> Iterator[None]:
    """Inside, what was assumed holds, and nothing more is: type rules of a graph that was traced ask again what they
    asked then. ``values`` are what stands for dimensions by now, all of those that were assumed of."""
    token = asker.set(_Known(assumptions, values))
    try:
        yield
    finally:
        asker.reset(token)


@contextmanager
def assuming(assumptions: Assumptions) -> Iterator[Assumptions]:
    """Inside, questions that ranges do not decide are answered and written down."""
    token = asker.set(assumptions)
    try:
        yield assumptions
    finally:
        asker.reset(token)


def expected(size: Any, exact: bool = False) -> int:
    """A number that is like a size: that of the call for which questions are answered, but (unless ``exact``) 2 for a
    dimension of 1 that can be larger; nothing is assumed."""
    asked = asker.get()
    return hint(size) if asked is None else asked.expected(size, exact)
