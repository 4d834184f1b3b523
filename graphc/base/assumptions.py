"""What a trace assumes of sizes that are known at run time: answers for some sizes, each with the line that asked."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graphc.base.location import capture
from graphc.base.size import Dimension, at, hint
from graphc.base.size_questions import asker

_RELATIONS = {"==": operator.eq, "<=": operator.le}
_OPPOSITE = {"==": "!=", "<=": ">"}


class Assumption(NamedTuple):
    """What a trace relies on: a relation of sizes, and whether it held."""

    relation: str
    a: Any
    b: Any
    answer: bool
    place: str = ""
    """The line that asked."""

    def holds(self, values: Mapping[Dimension, int]) -> bool:
        """Whether it is so for these sizes."""
        return _RELATIONS[self.relation](at(self.a, values), at(self.b, values)) is self.answer

    def __str__(self) -> str:
        shown = self.relation if self.answer else _OPPOSITE[self.relation]
        return f"{self.a} {shown} {self.b}" + (f" (asked at {self.place})" if self.place else "")


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
            known = self.found[key] = Assumption(relation, a, b, answer, str(capture()))
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
