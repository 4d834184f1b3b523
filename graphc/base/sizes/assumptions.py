"""Assumptions of a trace about symbolic sizes: comparisons answered for example sizes, with the lines that asked."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import Any

from graphc.base.location import Location, capture
from graphc.base.records import NamedTuple, dataclass
from graphc.base.sizes.named_dims import dimensions, size_of
from graphc.base.sizes.size import Dimension, UndecidedSize, at, hint
from graphc.base.sizes.size_questions import Asker, asker
from graphc.base.sizes.size_residues import Residue, decided, residue_of, residues_that_decide, under

_RELATIONS = {"==": operator.eq, "<=": operator.le}
_OPPOSITE = {"==": "!=", "<=": ">"}


def relation_holds(relation: str, a: Any, b: Any, answer: bool, values: Mapping[Dimension, int]) -> bool:
    """Return whether the comparison of two sizes gives ``answer`` when dimensions have these values."""
    return _RELATIONS[relation](at(a, values), at(b, values)) is answer


def format_relation(relation: str, a: Any, b: Any, answer: bool, location: Location | str) -> str:
    """Format an assumption and the line that asked for it."""
    where = str(location)
    return f"{a} {relation if answer else _OPPOSITE[relation]} {b}" + (f" (asked at {where})" if where else "")


class Assumption(NamedTuple):
    """Comparison of two sizes with the answer that a trace needs."""

    relation: str
    a: Any
    b: Any
    answer: bool
    place: Location | str = ""
    """The line that asked; a string if read from a file."""

    def holds(self, values: Mapping[Dimension, int]) -> bool:
        """Return whether the assumption is true for these sizes."""
        return relation_holds(self.relation, self.a, self.b, self.answer, values)

    @property
    def portable_place(self) -> str:
        """Return the line with a machine-independent file name."""
        return str(self.place.portable if isinstance(self.place, Location) else self.place)

    def __str__(self) -> str:
        return format_relation(*self)


def by_stage(assumptions: Iterable[Any], later: Sequence[Dimension | None]) -> list[list[Any]]:
    """Return assumptions by the stage of a call that decides them: the first is decided by the sizes of the arguments,
    stage ``i + 1`` needs ``later[i]`` too. None is a stage without a size.
    """
    stages: list[list[Any]] = [[] for _ in range(len(later) + 1)]
    for assumption in assumptions:
        used = dimensions((assumption.a, assumption.b)).values()
        stages[max((i + 1 for i, d in enumerate(later) if d in used), default=0)].append(assumption)
    return stages


class _Larger(dict[Dimension, int]):
    """Sizes of dimensions, at least 2 where their range allows it."""

    def __init__(self, sizes: Mapping[Dimension, int] | None):
        self._sizes = sizes

    def __missing__(self, dimension: Dimension) -> int:
        size = dimension.hint if self._sizes is None else self._sizes[dimension]
        return max(size, min(2, dimension.high))


@dataclass
class Assumptions:
    """Resolver that answers for example sizes and records each answer once."""

    sizes: Mapping[Dimension, int] | None = None
    """The sizes that answers hold for; None: the hints."""
    found: dict[tuple[str, Any, Any], Assumption] = field(default_factory=dict)
    residues: dict[Dimension, Residue] = field(default_factory=dict)
    """Remainders of dimensions that the trace assumes: they decide later questions."""

    @staticmethod
    def after(assumed: Sequence[Assumption], sizes: Mapping[Dimension, int] | None = None) -> Assumptions:
        """Return a resolver that answers for these sizes, and has already recorded the assumptions of a trace."""
        equal = [x.b - x.a for x in assumed if x.relation == "==" and x.answer]
        return Assumptions(sizes, {(x.relation, x.a, x.b): x for x in assumed}, _residues(equal))

    def restart(self, sizes: Mapping[Dimension, int] | None) -> None:
        """Forget all answers; the next ones are for these sizes."""
        self.sizes = sizes
        self.found.clear()
        self.residues.clear()

    def ask(self, relation: str, a: Any, b: Any) -> bool:
        """Return whether the relation holds for the example sizes, and record what the answer relies on.

        That is the remainders of dimensions where they prove the answer, else the answer itself.
        """
        key = (relation, a, b)
        assumption = self.found.get(key)
        if assumption is not None:
            return assumption.answer
        difference = b - a
        answer = decided(relation, under(self.residues, difference)) if self.residues else None
        if answer is None:
            answer = _RELATIONS[relation](at(a, self.sizes), at(b, self.sizes))
            self._record(key, difference, answer)
        return answer

    def assume(self, relation: str, a: Any, b: Any) -> None:
        """Record the answer for the example sizes by itself, not the remainders that prove it: it answers the same
        question of a stage whose dimensions are those of the trace."""
        answer = _RELATIONS[relation](at(a, self.sizes), at(b, self.sizes))
        self.found.setdefault((relation, a, b), Assumption(relation, a, b, answer, capture()))

    def _record(self, key: tuple[str, Any, Any], difference: Any, answer: bool) -> None:
        relation, a, b = key
        residues = None
        if answer or relation == "<=":
            residues = residues_that_decide(relation, difference, answer, self.sizes, self.residues)
        if residues is None:
            self.found[key] = Assumption(relation, a, b, answer, capture())
            return
        for dimension, (modulus, remainder) in residues.items() - self.residues.items():
            size = size_of(dimension)
            written = size // modulus * modulus + remainder
            self.found["==", size, written] = Assumption("==", size, written, True, capture())
        self.residues.update(residues)

    def value(self, size: Any) -> int:
        """Return the value of a size for the example sizes, and record it as an assumption."""
        value = at(size, self.sizes)
        self.ask("==", size, value)
        return value

    def expected(self, size: Any, exact: bool) -> int:
        """Return the value of a size for the example sizes and record nothing. Unless ``exact``, dimensions of size 1
        count as 2 where their range allows it."""
        return at(size, self.sizes if exact else _Larger(self.sizes))

    def bound(self, sizes: Mapping[Dimension, int]) -> Assumptions:
        """Return the assumptions that remain for code with these sizes of some dimensions."""
        remaining = Assumptions(self.sizes)
        for x in self.found.values():
            values: dict[Dimension, Any] = {d: sizes.get(d, size_of(d)) for d in dimensions((x.a, x.b)).values()}
            a, b = at(x.a, values), at(x.b, values)
            remaining.found[x.relation, a, b] = x._replace(a=a, b=b)
        return remaining

    def broken(self, values: Mapping[Dimension, int]) -> Assumption | None:
        """Return the first assumption violated by these sizes."""
        return next((x for x in self.found.values() if not x.holds(values)), None)


def _residues(differences: Iterable[Any]) -> dict[Dimension, Residue]:
    """Return the remainders that follow from differences that are zero; of two for a dimension, the larger modulus."""
    residues = [x for x in map(residue_of, differences) if x is not None]
    return dict(sorted(residues, key=lambda x: x[1].modulus))


class _Recorded:
    """Resolver that answers only from recorded assumptions."""

    def __init__(self, assumptions: Iterable[Assumption], values: Mapping[Dimension, Any]):
        self._answers = {
            (x.relation, at(x.b, values) - at(x.a, values)): x.answer  # type: ignore[arg-type]
            for x in assumptions
        }
        equal = (d for (relation, d), answer in self._answers.items() if relation == "==" and answer)
        self._residues = _residues(equal)

    def ask(self, relation: str, a: Any, b: Any) -> bool:
        """Return the recorded answer. Without one, an equality is False and an order raises UndecidedSize."""
        answer = self._answers.get((relation, b - a))
        if answer is None and relation == "==":
            answer = self._answers.get((relation, a - b))
        if answer is None and self._residues:
            answer = decided(relation, under(self._residues, b - a))
        if answer is None and relation == "==":
            return False
        if answer is None:
            raise UndecidedSize.of(relation, a, b)
        return answer

    def value(self, size: Any) -> int:
        """Return the number to which a recorded equality fixes a size; raises UndecidedSize otherwise."""
        sums = (size + d for (relation, d), answer in self._answers.items() if relation == "==" and answer)
        number = next((n for n in sums if type(n) is int), None)
        if number is None:
            raise UndecidedSize(f"the size {size} is a number in calls only")
        return number

    def expected(self, size: Any, exact: bool) -> int:
        """Return the value of a size for the hints."""
        return hint(size)


@contextmanager
def holding(
    assumptions: Iterable[Assumption],
    values: Mapping[Dimension, Any],
    questions: ContextVar[Asker | None] = asker,
) -> Iterator[None]:
    """Answer size questions from these assumptions alone while the block runs.

    Type rules ask the same questions about a traced graph as during the trace. ``values`` maps every dimension of the
    assumptions to its current size. ``questions`` are all, or ``access_asker`` for those about accesses of kernels.
    """
    token = questions.set(_Recorded(assumptions, values))
    try:
        yield
    finally:
        questions.reset(token)


@contextmanager
def assuming(assumptions: Assumptions) -> Iterator[Assumptions]:
    """Answer size questions that bounds leave open from ``assumptions``, and record the answers, while the block
    runs."""
    token = asker.set(assumptions)
    try:
        yield assumptions
    finally:
        asker.reset(token)


def expected(size: Any, exact: bool = False) -> int:
    """Return a typical value of a size and assume nothing: its value in the traced call, else for the hints.

    Unless ``exact``, a dimension of size 1 counts as 2 if it can be larger.
    """
    resolver = asker.get()
    return hint(size) if resolver is None else resolver.expected(size, exact)
