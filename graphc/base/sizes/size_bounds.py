"""Interval bounds of symbolic sizes, and proofs of a sum never being positive; fast rather than tight."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from graphc.base.records import NamedTuple
from graphc.base.sizes.size_pieces import pieces_of
from graphc.base.sizes.size_terms import (
    REMEMBERED,
    Atom,
    Dimension,
    Monomial,
    Positive,
    Quotient,
    Terms,
    constant,
    dimensions_of,
    expected,
    minus,
    order,
    over,
    plus,
    product,
    scaled,
    terms_of,
    times,
    total,
)

MOST_NESTED_CASES = 2
"""Positive parts ``max(x, 0)`` that a bound or a proof replaces by their two cases, one after the other.

Operands contain further positive parts, so each step doubles the sums to bound. All helpers pass on what is left of
this number: without it, the work grows exponentially with the nesting.
"""
_MOST_POSITIVE_PARTS = 2
"""Positive parts of a sum up to which its cases are distinguished. Of more, some remain in all cases, and the bound
of a sum of six takes four times the work."""


def bounds_of(summed: Terms) -> tuple[int, int]:
    """Return a conservative interval of a sum, ends included."""
    return -greatest(scaled(summed, -1)), greatest(summed)


@lru_cache(maxsize=REMEMBERED)
def greatest(summed: Terms, split: bool = False, case_depth: int = MOST_NESTED_CASES) -> int:
    """Return an upper bound of a sum.

    ``split``: do not bound the terms of highest degree separately. ``case_depth``: how many more levels of nested
    positive parts ``max(x, 0)`` to replace by their two cases, see ``_cases``.
    """
    constant_term, factor = sum(c for m, c in summed if not m), math.gcd(*[c for m, c in summed if m])
    if not factor:
        return constant_term
    if factor > 1 or constant_term:
        return constant_term + factor * greatest(tuple([(m, c // factor) for m, c in summed if m]), split, case_depth)
    pieces = pieces_of(summed)
    if pieces is not None and pieces.turns:
        return max(map(pieces.at, pieces.ends(*atom_bounds(pieces.atom))))
    best = min(_interval_high(summed), _shifted_high(summed))
    if case_depth and (cases := _cases(summed)):
        best = min(best, cases.of([greatest(s, False, case_depth - 1) for s in cases.sums]))
    degree = order(summed[0][0])[0]
    leading = tuple([(m, c) for m, c in summed if order(m)[0] == degree])
    if not split and len(leading) < len(summed):  # the common factor of products of more atoms can be taken out
        best = min(best, greatest(leading, False, case_depth) + greatest(summed[len(leading) :], False, case_depth))
    match = _quotient_in(summed)
    return best if match is None else min(best, greatest(_without(summed, *match), True, case_depth) // match[2])


@lru_cache(maxsize=REMEMBERED)
def never_positive(summed: Terms, case_depth: int = MOST_NESTED_CASES) -> bool:
    """Return whether a sum is proven <= 0 for all sizes.

    Sums with a positive value for the hints are rejected at once. Most proofs are short.
    """
    if expected(summed) > 0:
        return False
    if _interval_high(summed) <= 0 or greatest(summed) <= 0 or _split_high(summed) <= 0:
        return True
    deepest = _quotient_in(summed, alone=True)
    if deepest is not None and greatest(_without(summed, *deepest)) <= 0:
        return True
    ways = (_never_positive_by_factor, _never_positive_separately, _never_positive_as_product)
    if any(is_proven(summed, case_depth) for is_proven in ways):
        return True
    cases = _cases(summed) if case_depth else None
    return cases is not None and cases.is_proven([never_positive(s, case_depth - 1) for s in cases.sums])


def _never_positive_by_factor(summed: Terms, case_depth: int) -> bool:
    """Return whether the terms with a common nonnegative factor are <= 0 without it, and so are the others."""
    counts = Counter([atom for m, _ in summed for atom, _ in m])
    for factor, count in counts.items():
        if count < 2 or atom_bounds(factor)[0] < 0:
            continue
        rests = [(over(m, ((factor, 1),)), (m, c)) for m, c in summed]
        cofactor = total({rest: c for rest, (_, c) in rests if rest is not None})
        others = tuple([term for rest, term in rests if rest is None])
        if never_positive(cofactor, case_depth) and (not others or never_positive(others, case_depth)):
            return True
    return False


def _never_positive_separately(summed: Terms, case_depth: int) -> bool:
    """Return whether the terms of each set of dimensions are <= 0 by themselves; the constant term joins any of
    them."""
    groups: dict[frozenset[Dimension], dict[Monomial, int]] = {}
    for monomial, coefficient in summed:
        groups.setdefault(frozenset(dimensions_of(((monomial, 1),))), {})[monomial] = coefficient
    constant_term = sum(groups.pop(frozenset(), {}).values())
    number, sums = constant(constant_term), [total(group) for group in groups.values()]
    if constant_term < 0 and never_positive(minus(summed, number), case_depth):
        return True
    if len(sums) < 2:
        return False
    open_ones = [terms for terms in sums if not never_positive(terms, case_depth)]
    if open_ones:
        return len(open_ones) == 1 and never_positive(plus(open_ones[0], number), case_depth)
    return any(never_positive(plus(terms, number), case_depth) for terms in sums)


def _never_positive_as_product(summed: Terms, case_depth: int) -> bool:
    """Return whether the sum is a product of a sum over one dimension and a sum over the others, of opposite signs."""
    for dimension in sorted(dimensions_of(summed), key=lambda d: d.name):
        rows: dict[Monomial, dict[Monomial, int]] = {}
        for monomial, coefficient in summed:
            own = tuple([power for power in monomial if dimensions_of((((power,), 1),)) == (dimension,)])
            others = tuple([power for power in monomial if power not in own])
            rows.setdefault(own, {})[others] = coefficient
        cofactor = next(iter(rows.values()))
        scale = math.gcd(*cofactor.values())
        one, coefficient = next((m, c // scale) for m, c in cofactor.items())
        factor = {own: row.get(one, 0) // coefficient for own, row in rows.items()}
        if len(rows) < 2 or len(cofactor) < 2:  # a common factor, or none
            continue
        if all(row == {m: c // scale * factor[own] for m, c in cofactor.items()} for own, row in rows.items()):
            a, b = total(factor), total({m: c // scale for m, c in cofactor.items()})
            return any(
                never_positive(x, case_depth) and never_positive(scaled(y, -1), case_depth) for x, y in ((a, b), (b, a))
            )
    return False


@lru_cache(maxsize=REMEMBERED)
def atom_bounds(atom: Atom) -> tuple[int, int]:
    """Return a conservative interval of an atom, ends included."""
    if isinstance(atom, Dimension):
        return atom.low, atom.high
    low, high = bounds_of(terms_of(atom.operand))
    if isinstance(atom, Positive):
        return max(low, 0), max(high, 0)
    small, large = bounds_of(terms_of(atom.divisor))
    small = max(1, small)
    return min(low // small, low // large), max(high // small, high // large)


@lru_cache(maxsize=REMEMBERED)
def _monomial_bounds(monomial: Monomial) -> tuple[int, int]:
    low = high = 1
    for atom, power in monomial:
        a, b = atom_bounds(atom)
        for _ in range(power):
            ends = (low * a, low * b, high * a, high * b)
            low, high = min(ends), max(ends)
    return low, high


class _Cases(NamedTuple):
    """A sum with a positive part replaced by 0 and by its operand."""

    sums: tuple[Terms, Terms]
    is_least: bool
    """Whether the sum is the smaller of both, else the larger one."""

    def of(self, highs: Iterable[int]) -> int:
        """Return an upper bound of the sum from those of both cases."""
        return min(highs) if self.is_least else max(highs)

    def is_proven(self, proofs: Iterable[bool]) -> bool:
        """Return whether a bound of the sum is proven where one is proven in each case."""
        return any(proofs) if self.is_least else all(proofs)


@lru_cache(maxsize=REMEMBERED)
def _cases(summed: Terms) -> _Cases | None:
    """Return the two cases of a positive part whose factor has one sign; None if there is none.

    The sum grows with the positive part or falls with it, so it is the larger or the smaller one of both cases in all
    calls. Growing ones first: the smaller one may be either in different calls, which loses most.
    """
    positives = {a: None for m, _ in summed for a, _ in m if isinstance(a, Positive)}
    least: _Cases | None = None
    for atom in positives if len(positives) <= _MOST_POSITIVE_PARTS else ():
        overs = [(over(m, ((atom, 1),)), (m, c)) for m, c in summed]
        factor = total({rest: c for rest, (_, c) in overs if rest is not None})
        low, high = bounds_of(factor)
        if any(atom in dict(m) for m, _ in factor) or low < 0 < high:
            continue
        absent = tuple([term for rest, term in overs if rest is None])
        cases = _Cases((absent, plus(absent, product(factor, terms_of(atom.operand)))), high <= 0)
        if low >= 0:
            return cases
        least = least or cases
    return least


def _interval_high(summed: Terms) -> int:
    return sum([c * _monomial_bounds(m)[c > 0] for m, c in summed])


def _shifted_high(summed: Terms) -> int:
    """Return the upper bound after writing each atom as its minimum plus a rest: products then cancel."""
    powers: dict[Monomial, int] = {}
    for monomial, coefficient in summed:
        for m, c in _shifted(monomial):
            powers[m] = powers.get(m, 0) + c * coefficient
    return sum(c * (_widest(m) if c > 0 else 0 if m else 1) for m, c in powers.items())


@lru_cache(maxsize=REMEMBERED)
def _shifted(monomial: Monomial) -> tuple[tuple[Monomial, int], ...]:
    powers: dict[Monomial, int] = {(): 1}
    for atom, power in monomial:
        low = atom_bounds(atom)[0]
        for _ in range(power):
            grown: dict[Monomial, int] = {}
            for m, c in powers.items():
                up = times(m, ((atom, 1),))
                grown[up] = grown.get(up, 0) + c
                grown[m] = grown.get(m, 0) + c * low
            powers = grown
    return tuple(powers.items())


@lru_cache(maxsize=REMEMBERED)
def _widest(monomial: Monomial) -> int:
    """Return a product of the widths of its atoms' intervals."""
    return math.prod((atom_bounds(a)[1] - atom_bounds(a)[0]) ** p for a, p in monomial)


def _quotient_in(summed: Terms, alone: bool = False) -> tuple[Quotient, Terms, int] | None:
    """Return a quotient by a number, its numerator and its divisor, if none of its multiples in the sum may be
    negative.

    The numerator is a finer quotient with the same operand if there is one and not ``alone``, else its operand.
    """
    monomials = [m for m, _ in summed]
    atoms = {a: 0 for m in monomials for a, _ in m if isinstance(a, Quotient) and type(a.divisor) is int}
    usable = (q for q in atoms if all(_monomial_bounds(over(m, ((q, 1),)) or ())[0] >= 0 for m in monomials))
    quotients = sorted(usable, key=lambda q: (-_depth(q), -q.divisor))
    for i, quotient in enumerate(quotients if not alone else ()):
        for finer in quotients[i + 1 :]:
            if quotient.divisor % finer.divisor == 0 and quotient.operand.terms == finer.operand.terms:
                return quotient, ((((finer, 1),), 1),), quotient.divisor // finer.divisor
    return (quotients[0], quotients[0].operand.terms, quotients[0].divisor) if quotients else None


@lru_cache(maxsize=REMEMBERED)
def _depth(atom: Atom) -> int:
    """Return the nesting depth of quotients in an atom."""
    inner = [-1] if isinstance(atom, Dimension) else [_depth(a) for m, _ in terms_of(atom.operand) for a, _ in m]
    return 1 + max(inner, default=0)


def _without(summed: Terms, quotient: Quotient, operand: Terms, divisor: int) -> Terms:
    """Return an upper bound of ``summed * divisor``, with ``divisor * quotient`` written as operand minus remainder."""
    overs = {m: over(m, ((quotient, 1),)) for m, _ in summed}
    factor = total({rest: c for m, c in summed if (rest := overs[m]) is not None})
    low, high = bounds_of(factor)
    pieces = [factor] if low >= 0 or high <= 0 else [(term,) for term in factor]
    result, exact = scaled(summed, divisor), plus(operand, ((((quotient, 1),), -divisor),))
    for piece in pieces:
        rest = exact if bounds_of(piece)[0] >= 0 else minus(exact, constant(divisor - 1))
        result = plus(result, product(piece, rest))
    return result


def _split_high(summed: Terms) -> int:
    """Return the upper bound after splitting coefficients into multiples of the largest factor of a quotient and the
    rest."""
    step = max((abs(c) for m, c in summed if any(isinstance(a, Quotient) for a, _ in m)), default=1)
    multiples = total({m: (2 * c + step) // (2 * step) for m, c in summed})
    return greatest(multiples) * step + greatest(minus(summed, scaled(multiples, step)))
