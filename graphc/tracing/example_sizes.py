"""Example sizes of a trace: where it fails for some sizes, find others that answer one of its questions otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from graphc.base.errors import GraphcError
from graphc.base.sizes.assumptions import Assumption, Assumptions
from graphc.base.sizes.named_dims import dimensions
from graphc.base.sizes.size import Dimension, at
from graphc.base.sizes.size_limits import limits

T = TypeVar("T")
MOST_TRACES = 16
"""Traces before the first error is raised."""
MOST_DOUBLINGS = 12
"""Doublings of all sizes that are tried where no bound of a single dimension follows from a question."""

Sizes = Mapping[Dimension, int]


def first_trace(attempt: Callable[[Assumptions], T], sizes: Sizes) -> T:
    """Return the result of the first ``attempt`` that succeeds, for ``sizes`` or for others.

    Where an attempt fails, the next sizes answer one of its questions otherwise, the last one if possible: reflection
    padding of 64 asks ``sequence <= 64`` and fails for 32, so 65 is next. Raises the error of the first attempt.
    """
    tried = {tuple(sizes.values())}
    first_error: GraphcError | None = None
    for _ in range(MOST_TRACES):
        assumptions = Assumptions(sizes)
        try:
            return attempt(assumptions)
        except GraphcError as error:
            first_error = first_error or error
        asked = [a for a in assumptions.found.values() if sizes.keys() >= set(dimensions((a.a, a.b)).values())]
        candidates = sizes_with_other_answers(asked, sizes)
        following = next((c for c in candidates if tuple(c.values()) not in tried), None)
        if following is None:
            break
        sizes = following
        tried.add(tuple(sizes.values()))
    assert first_error is not None
    raise first_error


def sizes_with_other_answers(assumptions: Sequence[Assumption], sizes: Sizes) -> Iterator[Sizes]:
    """Yield sizes for which one question has another answer, and the questions before it have the same ones; the last
    question first."""
    for i in reversed(range(len(assumptions))):
        conditions = [*assumptions[:i], assumptions[i]._replace(answer=not assumptions[i].answer)]
        for candidate in _candidates(conditions, sizes):
            if all(d.low <= n <= d.high for d, n in candidate.items()) and all(c.holds(candidate) for c in conditions):
                yield candidate


def _candidates(conditions: Sequence[Assumption], sizes: Sizes) -> Iterator[Sizes]:
    """Yield sizes in the ranges that follow from conditions, then multiples of all sizes."""
    limited = limits(conditions, {d.name: d for d in sizes})
    yield {d: at(limited.get(d.name, n), None) for d, n in sizes.items()}
    for doublings in range(1, MOST_DOUBLINGS + 1):
        yield {d: n << doublings for d, n in sizes.items()}
