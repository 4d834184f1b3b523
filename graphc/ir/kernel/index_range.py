"""Ranges of index expressions under the guard of an access: first by interval arithmetic, then by enumeration."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from graphc.ir.kernel.index import Atom, Axis, Div, Dynamic, Index, atoms, bounds
from graphc.ir.kernel.statements import Bound, Guard

ENUMERATION_LIMIT = 1 << 20
"""Largest number of index points that ``guarded_range`` looks at one by one."""
_STEPS, _DEPTH = 200, 2


def guarded_bounds(index: Index, guard: Guard) -> tuple[int, int]:
    """Like ``index.bounds``, where every bound in ``guard`` holds; conservative. Low > high: never reached."""
    return _bounds(index, guard, 0) if guard else bounds(index)


def _bounds(index: Index, guard: Guard, depth: int) -> tuple[int, int]:
    """Takes multiples of guarded expressions out of the index, in all ways, and intersects what each way says."""
    if depth > _DEPTH:
        return bounds(index)
    low, high = _interval(index, guard, depth)
    stack: list[tuple[Index, int, int, int]] = [(index, 0, 0, 0)]
    steps = 0
    while stack and steps < _STEPS:
        steps += 1
        rest, at, base_low, base_high = stack.pop()
        rest_low, rest_high = _interval(rest, guard, depth)
        low, high = max(low, base_low + rest_low), min(high, base_high + rest_high)
        for i in range(at, len(guard)):
            bound = guard[i]
            for factor in _factors(rest, bound.index):
                a, b = _bound_range(bound)
                ends = (factor * a, factor * b) if factor > 0 else (factor * b, factor * a)
                stack.append((rest - bound.index * factor, i + 1, base_low + ends[0], base_high + ends[1]))
    return low, high


def _bound_range(bound: Bound) -> tuple[int, int]:
    low, high = bounds(bound.index)
    return max(low, bound.low), min(high, bound.high - 1)


def _factors(index: Index, part: Index) -> set[int]:
    """Integers f such that ``index - f * part`` loses a term."""
    coefficients = dict(index.terms)
    return {coefficients[a] // c for a, c in part.terms if a in coefficients and coefficients[a] % c == 0}


def _interval(index: Index, guard: Guard, depth: int) -> tuple[int, int]:
    low = high = index.constant
    for atom, coefficient in index.terms:
        a, b = _atom_interval(atom, guard, depth)
        low += coefficient * (a if coefficient > 0 else b)
        high += coefficient * (b if coefficient > 0 else a)
    return low, high


def _atom_interval(atom: Atom, guard: Guard, depth: int) -> tuple[int, int]:
    """Range of an atom: its own, cut by bounds on exactly this atom."""
    if isinstance(atom, (Axis, Dynamic)):
        low, high = bounds(Index(((atom, 1),)))
    else:
        a, b = _bounds(atom.operand, guard, depth + 1)
        if isinstance(atom, Div):
            low, high = a // atom.divisor, b // atom.divisor
        elif a // atom.divisor == b // atom.divisor:
            low, high = a % atom.divisor, b % atom.divisor
        else:
            low, high = 0, atom.divisor - 1
    for bound in guard:
        if len(bound.index.terms) == 1 and bound.index.terms[0][0] == atom:
            a, b = _solve(bound)
            low, high = max(low, a), min(high, b)
    return low, high


def _solve(bound: Bound) -> tuple[int, int]:
    """Range of x for ``low <= coefficient * x + constant < high``."""
    coefficient, constant = bound.index.terms[0][1], bound.index.constant
    first, last = bound.low - constant, bound.high - 1 - constant
    if coefficient < 0:
        coefficient, first, last = -coefficient, -last, -first
    return -(-first // coefficient), last // coefficient


def guarded_range(index: Index, guard: Guard) -> tuple[int, int] | None:
    """The exact smallest and largest value under the guard, by looking at every point; low > high when there is none.

    Run-time terms take every value of their range. Terms and bounds without a variable in common are looked at one
    after the other; None when one such part has more than ENUMERATION_LIMIT points.
    """
    low = high = index.constant
    for variables, terms, bounding in _parts(index, guard):
        ends = _part_range(variables, Index(terms), bounding)
        if ends is None or ends[0] > ends[1]:
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
    """None when ``0 <= index < size`` wherever the guard holds, else the range that says otherwise."""
    low, high = guarded_bounds(index, guard)
    if low > high or (low >= 0 and high < size):
        return None
    exact = guarded_range(index, guard)
    if exact is None:
        return low, high
    return None if exact[0] > exact[1] or (exact[0] >= 0 and exact[1] < size) else exact


def touches(index: Index, guard: Guard, axis: Axis) -> bool:
    """True when iterations of ``axis`` differ in the place, or the guard leaves one of them only."""
    used: Iterable[Axis | Dynamic] = atoms(index)
    low, high = guarded_bounds(Index(((axis, 1),)), guard)
    return axis in used or low >= high
