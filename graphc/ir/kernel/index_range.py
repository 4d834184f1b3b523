"""Range analysis of index expressions under the guard of an access: interval arithmetic, then enumeration.

Where sizes are known only at run time, the ends of intervals are sizes too, and statements about them hold for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from graphc.base.errors import VerifyError
from graphc.base.sizes.size import Quotient, Size, UndecidedSize, is_size
from graphc.base.sizes.size import terms as terms_of
from graphc.base.sizes.size_questions import access_asker
from graphc.base.sizes.size_relations import at_most, exact_quotient, sign, tighter
from graphc.base.sizes.size_terms import over
from graphc.ir.kernel.index import Atom, Axis, Div, Dynamic, Index, Mod, atoms, bounds, scaled, sizes_of
from graphc.ir.kernel.statements import Bound, Guard

ENUMERATION_LIMIT = 1 << 20
"""Largest number of index points that ``guarded_range`` enumerates."""
_STEPS, _DEPTH = 200, 2


def guarded_bounds(index: Index, guard: Guard) -> tuple[int, int]:
    """Return the bounds of an index where every bound in ``guard`` holds; conservative. Low > high: never reached."""
    return _bounds(index, _with_quotients(index, _with_operands(guard)), 0) if guard else bounds(index)


def _with_quotients(index: Index, guard: Guard) -> Guard:
    """Add the bounds that follow for quotients of guarded expressions that share a term with the index.

    ``0 <= 8*o + l - 1 < 2*n`` bounds ``4*o + (l - 1) // 2``, and ``0 <= n*i + j - n < m*n`` bounds ``i - 1``, too.
    """
    used = {atom for atom, _ in index.terms}
    numbers = {atom.divisor for atom in used if isinstance(atom, Div) and type(atom.divisor) is int}
    quotients = []
    for bound in guard:
        sizes = {c for atom, c in bound.index.terms if is_size(c) and atom in used and at_most(1, c)}
        for divisor in [*sorted(numbers), *sorted(sizes, key=str)]:
            quotient = bound.index // divisor
            if not used.isdisjoint([atom for atom, _ in quotient.terms]):
                quotients.append(Bound(quotient, bound.low // divisor, (bound.high - 1) // divisor + 1))
    return guard + tuple(quotients)


def _bounds(index: Index, guard: Guard, depth: int) -> tuple[int, int]:
    """Intersect all known ranges of the index."""
    low, high = bounds(index)
    for a, b in _ranges(index, guard, depth):
        low, high = tighter(low, a, low=True), tighter(high, b, low=False)
    return low, high


def _ranges(index: Index, guard: Guard, depth: int, relaxed: bool = False) -> Iterator[tuple[int, int]]:
    """Yield ranges that all hold, by subtracting multiples of guarded expressions from the index in all combinations.
    ``relaxed`` ranges are wider and have fewer quotients, see ``_over``."""
    if depth > _DEPTH:
        return
    stack: list[tuple[Index, int, int, int]] = [(index, 0, 0, 0)]
    steps = 0
    while stack and steps < _STEPS:
        steps += 1
        rest, position, base_low, base_high = stack.pop()
        rest_low, rest_high = _interval(rest, guard, depth, relaxed)
        yield base_low + rest_low, base_high + rest_high
        for i in range(position, len(guard)):
            bound = guard[i]
            for factor in _factors(rest, bound.index):
                remainder = _with_remainders(rest - bound.index * factor)
                for ends in _bound_ranges(bound):
                    a, b = scaled(factor, *ends)
                    stack.append((remainder, i + 1, base_low + a, base_high + b))


def _with_remainders(index: Index) -> Index:
    """Rewrite ``x - d*(x // d)`` as ``x % d``, whose range is narrower than that of its terms."""
    for atom, coefficient in index.terms:
        if isinstance(atom, Div) and type(coefficient) is int and type(atom.divisor) is int:
            factor = exact_quotient(-coefficient, atom.divisor)
            if factor is not None:
                product, coefficients = atom.operand * factor, dict(index.terms)
                if all(coefficients.get(a) == c for a, c in product.terms):
                    rest = index - product - Index(((atom, coefficient),))
                    return rest + atom.operand % atom.divisor * factor
    return index


def _bound_ranges(bound: Bound) -> list[tuple[int, int]]:
    """Return the ranges implied by a bound and its index for the index: one, or two if sizes decide which is
    narrower."""
    low, high = bounds(bound.index)
    first, last = bound.low, bound.high - 1
    narrow = tighter(low, first, low=True), tighter(high, last, low=False)
    return [narrow, (first, last)] if any(map(is_size, (low, high, first, last))) else [narrow]


def _with_operands(guard: Guard) -> Guard:
    """Add the bounds that follow for operands of guarded quotients, where sizes are involved.

    ``0 <= i // c < n`` bounds ``i`` by ``n*c``.
    """
    operands = []
    for bound in guard:
        ((atom, coefficient), *others) = bound.index.terms or ((None, 0),)
        if isinstance(atom, Div) and coefficient == 1 and not others and at_most(1, atom.divisor):
            low, high = ((end - bound.index.constant) * atom.divisor for end in (bound.low, bound.high))
            if is_size(low) or is_size(high):
                operands.append(Bound(atom.operand, low, high))
    return guard + tuple(operands)


def _factors(index: Index, guarded: Index) -> set[int]:
    """Return the factors f for which ``index - f * guarded`` loses a term."""
    coefficients = dict(index.terms)
    factors = [_factor(coefficients[a], c) for a, c in guarded.terms if a in coefficients]
    return {f for f in factors if f is not None}


def _factor(a: int, b: int) -> int | None:
    sign_of_b = sign(b)
    return exact_quotient(a * sign_of_b, b * sign_of_b) if sign_of_b else None


def _interval(index: Index, guard: Guard, depth: int, relaxed: bool) -> tuple[int, int]:
    low = high = index.constant
    for atom, coefficient in index.terms:
        a, b = scaled(coefficient, *_atom_interval(atom, guard, depth, relaxed))
        low, high = low + a, high + b
    return low, high


def _atom_interval(atom: Atom, guard: Guard, depth: int, relaxed: bool) -> tuple[int, int]:
    """Return the range of an atom: its own, cut by bounds on exactly this atom."""
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
    """Return an upper bound of a size: multiples of the divisor of a quotient are replaced by the dividend, of which a
    quotient by a size is simpler."""
    upper = size
    for monomial, coefficient in terms_of(size) if is_size(size) else ():
        for atom, power in monomial:
            if isinstance(atom, Quotient) and type(atom.divisor) is int and power == 1 and len(monomial) == 1:
                factor = exact_quotient(coefficient, atom.divisor)
                if factor is not None and factor > 0:
                    upper = upper + factor * (atom.operand - atom.divisor * (atom.operand // atom.divisor))
    return upper


def _digit(atom: Atom, guarded: Atom) -> int:
    """Return d where one atom is x % (d * e) and the other (x // d) % e, its upper digit; 0 for all others."""
    if not (isinstance(atom, Mod) and isinstance(guarded, Mod)) or guarded.operand.constant:
        return 0
    (inner, coefficient), *others = guarded.operand.terms
    if others or coefficient != 1 or not isinstance(inner, Div) or inner.operand != atom.operand:
        return 0
    return inner.divisor if inner.divisor * guarded.divisor == atom.divisor else 0


def _solve(bound: Bound) -> tuple[int, int]:
    """Return the range of x for ``low <= coefficient * x + constant < high``."""
    (atom, coefficient), constant = bound.index.terms[0], bound.index.constant
    first, last = bound.low - constant, bound.high - 1 - constant
    coefficient_sign = sign(coefficient)
    if coefficient_sign is None or (is_size(coefficient) and not at_most(1, coefficient * coefficient_sign)):
        return bounds(Index(((atom, 1),)))
    if coefficient_sign < 0:
        coefficient, first, last = -coefficient, -last, -first
    return -(-first // coefficient), last // coefficient


def guarded_range(index: Index, guard: Guard) -> tuple[int, int] | None:
    """Return the exact smallest and largest value under the guard, by enumeration; low > high when no point satisfies
    it.

    Run-time terms take every value of their range. Independent terms and bounds, without common variables, are
    enumerated separately; None when one such component has more than ENUMERATION_LIMIT points. For a component with
    sizes known only at run time, the range is ``guarded_bounds``.
    """
    low = high = index.constant
    for variables, component_terms, bounding in _components(index, guard):
        ends = _component_range(variables, Index(component_terms), bounding)
        if ends is None or _is_empty(*ends):
            return ends
        low, high = low + ends[0], high + ends[1]
    return low, high


def _components(index: Index, guard: Guard) -> list[tuple[set, tuple, Guard]]:
    """Split into components (variables, terms of the index, bounds) without common variables."""
    components: list[tuple[set, tuple, Guard]] = []
    pieces = [(set(atoms(Index((term,)))), (term,), ()) for term in index.terms]
    for variables, terms, bounding in [*pieces, *((set(atoms(b.index)), (), (b,)) for b in guard)]:
        for component in [p for p in components if p[0] & variables]:
            components.remove(component)
            variables, terms, bounding = component[0] | variables, (*component[1], *terms), (*component[2], *bounding)
        components.append((variables, terms, bounding))
    return components


def _component_range(names: set[Axis | Dynamic], index: Index, guard: Guard) -> tuple[int, int] | None:
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
    """Return None if ``0 <= index < size`` wherever the guard holds, else a range that violates it. With sizes known
    only at run time, None means proven for all sizes."""
    low, high = guarded_bounds(index, guard)
    if _is_empty(low, high) or (at_most(0, low) and at_most(high, size - 1)):
        return None
    exact = guarded_range(index, guard)
    if exact is None:
        return low, high
    if _is_empty(*exact) or (at_most(0, exact[0]) and at_most(exact[1], size - 1)):
        return None
    return None if _is_proven(index, guard, size) else exact


def require_within(index: Index, guard: Guard, size: int, name: str) -> None:
    """Raise VerifyError where an access may leave a buffer of this size and name; see ``require_order``."""
    outside = stays_within(index, guard, size)
    if outside is not None:
        low, high = outside
        what = f"index {index} lies in {low}..{high}, %{name} has {size} elements"
        require_order([(0, low), (high, size - 1)], what)


def require_order(pairs: Sequence[tuple[int, int]], what: str) -> None:
    """Raise VerifyError unless the first size of each pair is at most the second one in all calls. Its cause is an
    UndecidedSize where a trace may assume that order."""
    open_pairs = [(a, b) for a, b in pairs if not at_most(a, b)]
    questions = access_asker.get() if any(is_size(size) for pair in open_pairs for size in pair) else None
    try:
        if open_pairs and (questions is None or not all(questions.ask("<=", a, b) for a, b in open_pairs)):
            raise VerifyError(what)
    except UndecidedSize as question:
        raise VerifyError(what) from question


def _is_proven(index: Index, guard: Guard, size: int) -> bool:
    """Check whether some range proves each end; the narrowest range may depend on sizes."""
    if not is_size(size) and not _is_sized(index):
        return False
    guard = _with_quotients(index, _with_operands(guard))
    ranges = [*_ranges(index, guard, 0), *_ranges(index, guard, 0, relaxed=True)]
    nonnegative = [s for bound in guard if bound.index.is_constant for s in _slacks(bound) if is_size(s)]
    return any(_follows(low, nonnegative) for low, _ in ranges) and any(
        _follows(size - 1 - high, nonnegative) for _, high in ranges
    )


def _slacks(bound: Bound) -> tuple[int, int]:
    """Return the two nonnegative values of a bound of a constant, a condition on sizes alone, when it holds."""
    return bound.index.constant - bound.low, bound.high - 1 - bound.index.constant


def _follows(value: int, assumed: Sequence[int], multiples: int = 2) -> bool:
    """Check whether a size is nonnegative if the ``assumed`` ones are: without up to two multiples of them it is."""
    if at_most(0, value):
        return True
    return multiples > 0 and any(
        at_most(0, factor) and _follows(value - factor * nonnegative, assumed, multiples - 1)
        for nonnegative in assumed
        for factor in _multiples(value, nonnegative)
    )


def _multiples(value: int, divisor: int) -> set[int]:
    """Return the numbers and sizes f for which ``value - f * divisor`` loses a term."""
    pairs = [(over(m, n), c // d) for n, d in terms_of(divisor) if n for m, c in terms_of(value)]
    return {
        factor if not rest else Size(((rest, 1),)) * factor for rest, factor in pairs if rest is not None and factor > 0
    }


def _is_empty(low: int, high: int) -> bool:
    return at_most(high + 1, low)


def _is_sized(index: Index) -> bool:
    return any(True for _ in sizes_of(index))


def _is_sized_bound(bound: Bound) -> bool:
    return is_size(bound.low) or is_size(bound.high) or _is_sized(bound.index)


def touches(index: Index, guard: Guard, axis: Axis) -> bool:
    """Check whether iterations of ``axis`` access different elements, or the guard admits only one of them."""
    used: Iterable[Axis | Dynamic] = atoms(index)
    if axis in used:
        return True
    low, high = guarded_bounds(Index(((axis, 1),)), guard)
    return at_most(high, low)
