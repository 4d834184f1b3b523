"""Ranges of index expressions under the guard of an access: first by interval arithmetic, then by enumeration.

Where sizes are known at run time the ends of intervals are sizes, too, and what is said of them holds for all sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from graphc.base.sizes.size import Quotient, is_size
from graphc.base.sizes.size import terms as terms_of
from graphc.base.sizes.size_relations import at_most, exact_quotient, sign, tighter
from graphc.ir.kernel.index import Atom, Axis, Div, Dynamic, Index, Mod, atoms, bounds, scaled, sizes_of
from graphc.ir.kernel.statements import Bound, Guard

ENUMERATION_LIMIT = 1 << 20
"""Largest number of index points that ``guarded_range`` looks at one by one."""
_STEPS, _DEPTH = 200, 2


def guarded_bounds(index: Index, guard: Guard) -> tuple[int, int]:
    """Like ``index.bounds``, where every bound in ``guard`` holds; conservative. Low > high: never reached."""
    return _bounds(index, guard, 0) if guard else bounds(index)


def _bounds(index: Index, guard: Guard, depth: int) -> tuple[int, int]:
    """The intersection of what is known of the index."""
    low, high = bounds(index)
    for a, b in _ranges(index, guard, depth):
        low, high = tighter(low, a, low=True), tighter(high, b, low=False)
    return low, high


def _ranges(index: Index, guard: Guard, depth: int, relaxed: bool = False) -> Iterator[tuple[int, int]]:
    """Ranges that all hold: multiples of guarded expressions are taken out of the index, in all ways. ``relaxed`` ones
    are wider and have fewer quotients, see ``_over``."""
    if depth > _DEPTH:
        return
    stack: list[tuple[Index, int, int, int]] = [(index, 0, 0, 0)]
    steps = 0
    while stack and steps < _STEPS:
        steps += 1
        rest, at, base_low, base_high = stack.pop()
        rest_low, rest_high = _interval(rest, guard, depth, relaxed)
        yield base_low + rest_low, base_high + rest_high
        for i in range(at, len(guard)):
            bound = guard[i]
            for factor in _factors(rest, bound.index):
                left = _with_remainders(rest - bound.index * factor)
                for ends in _bound_ranges(bound):
                    a, b = scaled(factor, *ends)
                    stack.append((left, i + 1, base_low + a, base_high + b))


def _with_remainders(index: Index) -> Index:
    """The same with ``x - d*(x // d)`` as ``x % d``, of which less is known term by term."""
    for atom, coefficient in index.terms:
        if isinstance(atom, Div) and type(coefficient) is int and type(atom.divisor) is int:
            factor = exact_quotient(-coefficient, atom.divisor)
            if factor is not None:
                part, here = atom.operand * factor, dict(index.terms)
                if all(here.get(a) == c for a, c in part.terms):
                    rest = index - part - Index(((atom, coefficient),))
                    return rest + atom.operand % atom.divisor * factor
    return index


def _bound_ranges(bound: Bound) -> list[tuple[int, int]]:
    """What a bound and the index in it say of that index: one range, or two where sizes decide which is narrower."""
    low, high = bounds(bound.index)
    first, last = bound.low, bound.high - 1
    narrow = tighter(low, first, low=True), tighter(high, last, low=False)
    return [narrow, (first, last)] if any(map(is_size, (low, high, first, last))) else [narrow]


def _factors(index: Index, part: Index) -> set[int]:
    """Factors f such that ``index - f * part`` loses a term."""
    coefficients = dict(index.terms)
    found = [_factor(coefficients[a], c) for a, c in part.terms if a in coefficients]
    return {f for f in found if f is not None}


def _factor(a: int, b: int) -> int | None:
    known = sign(b)
    return exact_quotient(a * known, b * known) if known else None


def _interval(index: Index, guard: Guard, depth: int, relaxed: bool) -> tuple[int, int]:
    low = high = index.constant
    for atom, coefficient in index.terms:
        a, b = scaled(coefficient, *_atom_interval(atom, guard, depth, relaxed))
        low, high = low + a, high + b
    return low, high


def _atom_interval(atom: Atom, guard: Guard, depth: int, relaxed: bool) -> tuple[int, int]:
    """Range of an atom: its own, cut by bounds on exactly this atom."""
    if isinstance(atom, (Axis, Dynamic)):
        low, high = bounds(Index(((atom, 1),)))
    else:
        a, b = _bounds(atom.operand, guard, depth + 1)
        if isinstance(atom, Div):
            low, high = a // atom.divisor, (_over(b) if relaxed else b) // atom.divisor
        elif a // atom.divisor == b // atom.divisor:
            low, high = a % atom.divisor, b % atom.divisor
        else:
            low, high = 0, atom.divisor - 1
    for bound in guard:
        if len(bound.index.terms) != 1:
            continue
        guarded = bound.index.terms[0][0]
        step = 1 if guarded == atom else _digit(atom, guarded)
        if step:
            a, b = _solve(bound)
            low, high = tighter(low, a * step, low=True), tighter(high, b * step + step - 1, low=False)
    return low, high


def _over(size: int) -> int:
    """No less than a size: multiples of a divisor of its quotients become what these are quotients of, of which a
    quotient by a size is simpler."""
    found = size
    for monomial, coefficient in terms_of(size) if is_size(size) else ():
        for atom, power in monomial:
            if isinstance(atom, Quotient) and type(atom.divisor) is int and power == 1 and len(monomial) == 1:
                factor = exact_quotient(coefficient, atom.divisor)
                if factor is not None and factor > 0:
                    found = found + factor * (atom.operand - atom.divisor * (atom.operand // atom.divisor))
    return found


def _digit(atom: Atom, guarded: Atom) -> int:
    """d where one is x % (d * e) and the other (x // d) % e, its upper digit; 0 for all others."""
    if not (isinstance(atom, Mod) and isinstance(guarded, Mod)) or guarded.operand.constant:
        return 0
    (inner, coefficient), *others = guarded.operand.terms
    if others or coefficient != 1 or not isinstance(inner, Div) or inner.operand != atom.operand:
        return 0
    return inner.divisor if inner.divisor * guarded.divisor == atom.divisor else 0


def _solve(bound: Bound) -> tuple[int, int]:
    """Range of x for ``low <= coefficient * x + constant < high``."""
    (atom, coefficient), constant = bound.index.terms[0], bound.index.constant
    first, last = bound.low - constant, bound.high - 1 - constant
    known = sign(coefficient)
    if known is None or (is_size(coefficient) and not at_most(1, coefficient * known)):
        return bounds(Index(((atom, 1),)))
    if known < 0:
        coefficient, first, last = -coefficient, -last, -first
    return -(-first // coefficient), last // coefficient


def guarded_range(index: Index, guard: Guard) -> tuple[int, int] | None:
    """The exact smallest and largest value under the guard, by looking at every point; low > high when there is none.

    Run-time terms take every value of their range. Terms and bounds without a variable in common are looked at one
    after the other; None when one such part has more than ENUMERATION_LIMIT points. Of a part with sizes known at run
    time the range is ``guarded_bounds``.
    """
    low = high = index.constant
    for variables, terms, bounding in _parts(index, guard):
        ends = _part_range(variables, Index(terms), bounding)
        if ends is None or _is_empty(*ends):
            return ends
        low, high = low + ends[0], high + ends[1]
    return low, high


def _parts(index: Index, guard: Guard) -> list[tuple[set, tuple, Guard]]:
    """(variables, terms of the index, bounds) that have no variable in common with another part."""
    parts: list[tuple[set, tuple, Guard]] = []
    pieces = [(set(atoms(Index((term,)))), (term,), ()) for term in index.terms]
    for variables, terms, bounding in [*pieces, *((set(atoms(b.index)), (), (b,)) for b in guard)]:
        for part in [p for p in parts if p[0] & variables]:
            parts.remove(part)
            variables, terms, bounding = part[0] | variables, (*part[1], *terms), (*part[2], *bounding)
        parts.append((variables, terms, bounding))
    return parts


def _part_range(names: set[Axis | Dynamic], index: Index, guard: Guard) -> tuple[int, int] | None:
    if not guard and len(index.terms) == 1 and isinstance(index.terms[0][0], (Axis, Dynamic)):
        return bounds(index)
    if _is_sized(index) or any(map(_is_sized_bound, guard)):
        return guarded_bounds(index, guard)
    variables = sorted(names, key=str)
    points = 1
    for variable in variables:
        low, high = bounds(Index(((variable, 1),)))
        points *= max(0, high - low + 1)
    if points > ENUMERATION_LIMIT:
        return None
    grid = {v: _line(v, i, len(variables)) for i, v in enumerate(variables)}
    holds = np.ones([1] * len(variables), dtype=bool)
    for bound in guard:
        values = _values(bound.index, grid)
        holds = holds & (values >= bound.low) & (values < bound.high)
    values, holds = np.broadcast_arrays(_values(index, grid), holds)
    inside = values[holds] if points else values[:0]
    return (int(inside.min()), int(inside.max())) if inside.size else (1, 0)


def _line(variable: Axis | Dynamic, position: int, count: int) -> np.ndarray:
    low, high = bounds(Index(((variable, 1),)))
    return np.arange(low, high + 1).reshape([-1 if i == position else 1 for i in range(count)])


def _values(index: Index, grid: dict[Axis | Dynamic, np.ndarray]) -> np.ndarray:
    total = np.asarray(index.constant)
    for atom, coefficient in index.terms:
        if isinstance(atom, (Axis, Dynamic)):
            term = grid[atom]
        elif isinstance(atom, Div):
            term = _values(atom.operand, grid) // atom.divisor
        else:
            term = _values(atom.operand, grid) % atom.divisor
        total = total + term * coefficient
    return total


def stays_within(index: Index, guard: Guard, size: int) -> tuple[int, int] | None:
    """None when ``0 <= index < size`` wherever the guard holds, else the range that says otherwise. Where sizes are
    known at run time it is None when that is proven of all."""
    low, high = guarded_bounds(index, guard)
    if _is_empty(low, high) or (at_most(0, low) and at_most(high, size - 1)):
        return None
    exact = guarded_range(index, guard)
    if exact is None:
        return low, high
    if _is_empty(*exact) or (at_most(0, exact[0]) and at_most(exact[1], size - 1)):
        return None
    return None if _is_proven(index, guard, size) else exact


def _is_proven(index: Index, guard: Guard, size: int) -> bool:
    """Whether one of the ranges says so of each end; which range is the narrowest may depend on sizes."""
    if not is_size(size) and not _is_sized(index):
        return False
    found = [*_ranges(index, guard, 0), *_ranges(index, guard, 0, relaxed=True)]
    given = [s for bound in guard if bound.index.is_constant for s in _slacks(bound) if is_size(s)]
    return any(_follows(low, given) for low, _ in found) and any(_follows(size - 1 - high, given) for _, high in found)


def _slacks(bound: Bound) -> tuple[int, int]:
    """What is not negative where a bound of a constant, a condition on sizes alone, holds."""
    return bound.index.constant - bound.low, bound.high - 1 - bound.index.constant


def _follows(value: int, given: Sequence[int]) -> bool:
    """Whether a size is not negative, if those ``given`` are not."""
    if at_most(0, value):
        return True
    coefficients = dict(terms_of(value))
    for known in given:
        for monomial, coefficient in terms_of(known):
            factor = coefficients.get(monomial, 0) // coefficient if monomial else 0
            if factor > 0 and at_most(0, value - factor * known):
                return True
    return False


def _is_empty(low: int, high: int) -> bool:
    return at_most(high + 1, low)


def _is_sized(index: Index) -> bool:
    return any(True for _ in sizes_of(index))


def _is_sized_bound(bound: Bound) -> bool:
    return is_size(bound.low) or is_size(bound.high) or _is_sized(bound.index)


def touches(index: Index, guard: Guard, axis: Axis) -> bool:
    """True when iterations of ``axis`` differ in the place, or the guard leaves one of them only."""
    used: Iterable[Axis | Dynamic] = atoms(index)
    if axis in used:
        return True
    low, high = guarded_bounds(Index(((axis, 1),)), guard)
    return at_most(high, low)
