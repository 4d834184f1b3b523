"""Substitutions that follow from assumptions: narrower ranges, constants, multiples, or other dimensions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from graphc.base.sizes.assumptions import Assumption, Assumptions
from graphc.base.sizes.named_dims import Dim, dimensions, size_of
from graphc.base.sizes.size import Dimension, UndecidedSize, always, at, bounds, is_size, terms
from graphc.base.sizes.size_relations import trend
from graphc.base.sizes.size_residues import residue_of
from graphc.base.sizes.size_text import LOOP


def limits(assumptions: Iterable[Assumption], by_name: Mapping[str, Dimension]) -> dict[str, Any]:
    """Return the substitution for each dimension, by name, in code that holds only under the assumptions.

    ``n <= 128`` narrows the range of n, ``n == 5`` gives 5, ``n == m`` gives m, ``time == 4*(time // 4) + 1`` gives
    ``4*time_4 + 1`` with a new dimension time_4. Dimensions without assumptions are left out, and so are assumptions
    that do not limit a single dimension, such as ``n <= m``.
    """
    substitution = _Substitution(by_name)
    listed = list(assumptions)
    for _ in range(len(by_name) + 1):
        for assumption in listed:
            substitution.take(assumption)
    return {name: substitution.now[d] for name, d in by_name.items() if substitution.now[d] != size_of(d)}


def sizes_now(assumptions: Collection[Assumption], now: Mapping[str, Any]) -> dict[Dimension, Any]:
    """Return the size that each dimension of the assumptions has in code whose dimensions have the sizes ``now``, by
    name: what ``limits`` substitutes for a dimension that the code does not have."""
    dims = dimensions(n for x in assumptions for n in (x.a, x.b))
    replaced = {} if dims.keys() <= now.keys() else limits(assumptions, dims)
    return {d: now[name] if name in now else replaced.get(name, size_of(d)) for name, d in dims.items()}


def in_terms_of(assumptions: Collection[Assumption], by_name: Mapping[str, Dimension]) -> list[Assumption]:
    """Restate assumptions for the dimensions of these names, whose ranges may be narrower by now.

    Assumptions that hold for all their sizes are left out, such as those that replaced a dimension by a number or a
    multiple.
    """
    values = sizes_now(assumptions, {name: size_of(d) for name, d in by_name.items()})
    restated = []
    for assumption in assumptions:
        current = assumption._replace(a=at(assumption.a, values), b=at(assumption.b, values))
        if dimensions([current.a, current.b]).keys() <= by_name.keys() and not _is_decided(current):
            restated.append(current)
    return restated


def _is_decided(assumption: Assumption) -> bool:
    """Return whether an assumption holds for all sizes."""
    a, b = assumption.a, assumption.b
    if assumption.relation == "<=":
        return always("<=", a, b) if assumption.answer else always("<=", b + 1, a)
    if assumption.answer:
        return always("==", a, b)
    return always("<=", a + 1, b) or always("<=", b + 1, a)


def question_behind(error: BaseException) -> tuple[str, Any, Any] | None:
    """Return the comparison of sizes without an answer that caused an error, if any."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, UndecidedSize) and cause.question is not None:
            return cause.question
        cause = cause.__cause__
    return None


def answered(error: BaseException, assumptions: Assumptions, by_name: Mapping[str, Dimension]) -> bool:
    """Answer the question that stopped a later stage for the example sizes, as a trace would have done.

    Return whether that adds an assumption. ``by_name`` are the dimensions of the trace; the stage may have had those
    that ``limits`` substitutes for them.
    """
    question = question_behind(error)
    if question is None:
        return False
    relation, *sizes = question
    substitutes = limits(assumptions.found.values(), by_name)
    origins: dict[Dimension, Any] = {d: size_of(d) for d in by_name.values()}
    for name, substitute in substitutes.items():
        used = list(dimensions([substitute]).values())
        if len(used) == 1 and used[0] not in origins:
            rest = at(substitute, {used[0]: 0})
            origins[used[0]] = (size_of(by_name[name]) - rest) // (at(substitute, {used[0]: 1}) - rest)
    if not all(d in origins for d in dimensions(sizes).values()):
        return False
    count = len(assumptions.found)
    record = assumptions.assume if relation == "<=" else assumptions.ask
    record(relation, *[at(size, origins) for size in sizes])
    return len(assumptions.found) > count


class _Identity(dict[Dimension, Any]):
    """Substitution that leaves all other dimensions unchanged."""

    def __missing__(self, dimension: Dimension) -> Any:
        return size_of(dimension)


class _Substitution:
    """Substitution for each dimension so far."""

    def __init__(self, by_name: Mapping[str, Dimension]):
        self.now: dict[Dimension, Any] = {d: size_of(d) for d in by_name.values()}
        self.names = set(by_name)

    def replace(self, dimension: Dimension, size: Any) -> None:
        """Substitute a size for a dimension."""
        values = _Identity({dimension: size})
        self.now = {d: at(present, values) for d, present in self.now.items()}

    def take(self, assumption: Assumption) -> None:
        """Apply one assumption under the current substitution."""
        a, b = (at(size, _Identity(self.now)) for size in (assumption.a, assumption.b))
        difference = _without_factors(b - a)
        if not is_size(difference):
            return
        if assumption.relation == "<=":
            self.at_least_zero(difference if assumption.answer else -difference - 1)
        elif assumption.answer:
            self.zero(difference)
        else:
            self.not_zero(difference)

    def at_least_zero(self, size: Any) -> None:
        """Narrow the range of a dimension that alone decides whether a size is negative, by bisection."""
        used = list(dimensions([size]).values()) if is_size(size) else []
        if len(used) > 1:
            for dimension in used:  # 4*a*b - 1 is negative where a is 0
                if dimension.low < dimension.high and bounds(at(size, _Identity({dimension: dimension.low})))[1] < 0:
                    self.narrow(dimension, dimension.low + 1, dimension.high)
            return
        direction = trend(size) if used else 0
        if not direction:
            return
        (dimension,) = used
        low, high = dimension.low, dimension.high
        good, bad = (high, low) if direction > 0 else (low, high)
        if at(size, {dimension: good}) < 0 or at(size, {dimension: bad}) >= 0:
            return
        while abs(good - bad) > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if at(size, {dimension: middle}) >= 0 else (good, middle)
        self.narrow(dimension, *((good, high) if direction > 0 else (low, good)))

    def narrow(self, dimension: Dimension, low: int, high: int) -> None:
        """Narrow the range of a dimension."""
        common = [c for c in dimension.common if low <= c <= high]
        self.replace(dimension, Dim(dimension.name, low, high, sorted((low, dimension.hint, high))[1], common))

    def not_zero(self, size: Any) -> None:
        """Remove an end of a range where the size is zero."""
        for dimension in dimensions([size]).values():
            low, high = dimension.low, dimension.high
            if low < high:
                if bounds(at(size, _Identity({dimension: low}))) == (0, 0):
                    self.narrow(dimension, low + 1, high)
                elif bounds(at(size, _Identity({dimension: high}))) == (0, 0):
                    self.narrow(dimension, low, high - 1)

    def zero(self, size: Any) -> None:
        """Solve ``size == 0`` for a dimension and substitute the solution."""
        if self.has_remainder(size):
            return
        solutions = [*self.solutions(size)]
        if solutions:
            # Prefer ``t = n + p`` to ``n = t - p``, which could be negative as far as bounds tell.
            dimension, value = next(((d, v) for d, v in solutions if bounds(v)[0] >= d.low), solutions[0])
            self.replace(dimension, value)
            self.at_least_zero(value - dimension.low)
            self.at_least_zero(dimension.high - value)
            return
        # A monotonic size is zero in a range: n // 4 == 2 for 8..11.
        self.at_least_zero(size)
        self.at_least_zero(-at(size, _Identity(self.now)))

    def solutions(self, size: Any) -> Iterator[tuple[Dimension, Any]]:
        """Yield each dimension for which ``size == 0`` can be solved, and the solution."""
        for monomial, factor in terms(size):
            dimension = _alone(monomial)
            if dimension is None:
                continue
            rest = size - size_of(dimension) * factor
            inside = dimension in dimensions([rest]).values()
            is_divisible = abs(factor) == 1 or (not is_size(rest) and rest % factor == 0)
            if is_divisible and not inside:
                value = -rest // factor if factor > 0 else rest // -factor
                if self.is_in_range(dimension, value):
                    yield dimension, value

    def is_in_range(self, dimension: Dimension, size: Any) -> bool:
        return is_size(size) or dimension.low <= size <= dimension.high

    def has_remainder(self, size: Any) -> bool:
        """Return whether ``size == 0`` gives a dimension a remainder by a number; if so, substitute a multiple plus the
        remainder."""
        residue = residue_of(size)
        if residue is None:
            return False
        dimension, (divisor, remainder) = residue
        low, high = -((remainder - dimension.low) // divisor), (dimension.high - remainder) // divisor
        if low > high:
            return False
        name = f"{dimension.name}_{divisor}"
        while name in self.names or LOOP.fullmatch(name):
            name += "_"
        self.names.add(name)
        hint = sorted((low, (dimension.hint - remainder) // divisor, high))[1]
        common = [c // divisor for c in dimension.common if c % divisor == remainder]
        self.replace(dimension, divisor * Dim(name, low, high, hint, common) + remainder)
        return True


def _without_factors(size: Any) -> Any:
    """Divide a size by the positive dimensions that are factors of all its terms; its sign stays the same."""
    monomials = [dict(monomial) for monomial, _ in terms(size)] if is_size(size) else []
    for atom in monomials[0] if monomials else ():
        if isinstance(atom, Dimension) and atom.low > 0 and all(atom in monomial for monomial in monomials):
            return _without_factors(size // size_of(atom))
    return size


def _alone(monomial: Any) -> Dimension | None:
    """Return the only dimension of a monomial of degree 1, else None."""
    if len(monomial) != 1 or monomial[0][1] != 1 or not isinstance(monomial[0][0], Dimension):
        return None
    return monomial[0][0]
