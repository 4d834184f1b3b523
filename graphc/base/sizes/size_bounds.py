"""Ranges of sizes, and what they prove: the greatest value that terms can have, as tightly as is found quickly."""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache

from graphc.base.sizes.size_terms import (
    REMEMBERED,
    Atom,
    Dimension,
    Monomial,
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


def bounds_of(summed: Terms) -> tuple[int, int]:
    """Numbers between which a sum lies, ends included; conservative."""
    return -greatest(scaled(summed, -1)), greatest(summed)


@lru_cache(maxsize=REMEMBERED)
def greatest(summed: Terms, parted: bool = False) -> int:
    """A number that a sum does not exceed. ``parted``: products of more atoms are not looked at for themselves."""
    alone, factor = sum(c for m, c in summed if not m), math.gcd(*[c for m, c in summed if m])
    if not factor:
        return alone
    if factor > 1 or alone:
        return alone + factor * greatest(tuple([(m, c // factor) for m, c in summed if m]), parted)
    best = min(_interval_high(summed), _shifted_high(summed))
    degree = order(summed[0][0])[0]
    most = tuple([(m, c) for m, c in summed if order(m)[0] == degree])
    if not parted and len(most) < len(summed):  # the common factor of products of more atoms can be taken out
        best = min(best, greatest(most) + greatest(summed[len(most) :]))
    found = _quotient_in(summed)
    return best if found is None else min(best, greatest(_without(summed, *found), True) // found[2])


@lru_cache(maxsize=REMEMBERED)
def never_positive(summed: Terms) -> bool:
    """Whether a sum is proven to be 0 or less for all sizes. What does not hold for the hints need not be proven, and
    most proofs are short."""
    if expected(summed) > 0:
        return False
    if _interval_high(summed) <= 0 or greatest(summed) <= 0 or _parted_high(summed) <= 0:
        return True
    deepest = _quotient_in(summed, alone=True)
    if deepest is not None and greatest(_without(summed, *deepest)) <= 0:
        return True
    return _never_positive_by_factor(summed) or _never_positive_apart(summed)


def _never_positive_by_factor(summed: Terms) -> bool:
    """Whether the terms with a factor that is never negative are 0 or less without it, and so are the others."""
    counts = Counter([atom for m, _ in summed for atom, _ in m])
    for factor, count in counts.items():
        if count < 2 or _atom_bounds(factor)[0] < 0:
            continue
        rests = [(over(m, ((factor, 1),)), (m, c)) for m, c in summed]
        held = total({rest: c for rest, (_, c) in rests if rest is not None})
        others = tuple([term for rest, term in rests if rest is None])
        if never_positive(held) and (not others or never_positive(others)):
            return True
    return False


def _never_positive_apart(summed: Terms) -> bool:
    """Whether the terms of each set of dimensions are 0 or less for themselves; a number goes with any of them."""
    parts: dict[frozenset[Dimension], dict[Monomial, int]] = {}
    for monomial, coefficient in summed:
        parts.setdefault(frozenset(dimensions_of(((monomial, 1),))), {})[monomial] = coefficient
    left = sum(parts.pop(frozenset(), {}).values())
    number, sums = constant(left), [total(part) for part in parts.values()]
    if left < 0 and never_positive(minus(summed, number)):
        return True
    if len(sums) < 2:
        return False
    open_ones = [part for part in sums if not never_positive(part)]
    if open_ones:
        return len(open_ones) == 1 and never_positive(plus(open_ones[0], number))
    return any(never_positive(plus(part, number)) for part in sums)


@lru_cache(maxsize=REMEMBERED)
def _atom_bounds(atom: Atom) -> tuple[int, int]:
    if isinstance(atom, Dimension):
        return atom.low, atom.high
    low, high = bounds_of(terms_of(atom.operand))
    small, large = bounds_of(terms_of(atom.divisor))
    small = max(1, small)
    return min(low // small, low // large), max(high // small, high // large)


@lru_cache(maxsize=REMEMBERED)
def _monomial_bounds(monomial: Monomial) -> tuple[int, int]:
    low = high = 1
    for atom, power in monomial:
        a, b = _atom_bounds(atom)
        for _ in range(power):
            ends = (low * a, low * b, high * a, high * b)
            low, high = min(ends), max(ends)
    return low, high


def _interval_high(summed: Terms) -> int:
    return sum([c * _monomial_bounds(m)[c > 0] for m, c in summed])


def _shifted_high(summed: Terms) -> int:
    """The same with atoms as what they are above their least value: products then cancel against each other."""
    powers: dict[Monomial, int] = {}
    for monomial, coefficient in summed:
        for m, c in _shifted(monomial):
            powers[m] = powers.get(m, 0) + c * coefficient
    return sum(c * (_widest(m) if c > 0 else 0 if m else 1) for m, c in powers.items())


@lru_cache(maxsize=REMEMBERED)
def _shifted(monomial: Monomial) -> tuple[tuple[Monomial, int], ...]:
    parts: dict[Monomial, int] = {(): 1}
    for atom, power in monomial:
        low = _atom_bounds(atom)[0]
        for _ in range(power):
            grown: dict[Monomial, int] = {}
            for m, c in parts.items():
                up = times(m, ((atom, 1),))
                grown[up] = grown.get(up, 0) + c
                grown[m] = grown.get(m, 0) + c * low
            parts = grown
    return tuple(parts.items())


@lru_cache(maxsize=REMEMBERED)
def _widest(monomial: Monomial) -> int:
    """A product of atoms at their largest above their least value."""
    return math.prod((_atom_bounds(a)[1] - _atom_bounds(a)[0]) ** p for a, p in monomial)


def _quotient_in(summed: Terms, alone: bool = False) -> tuple[Quotient, Terms, int] | None:
    """A quotient by a number of which no multiple may be negative, and what it is a quotient of: another one with the
    same operand where there is one, unless it is looked at ``alone``, else its operand."""
    monomials = [m for m, _ in summed]
    atoms = {a: 0 for m in monomials for a, _ in m if isinstance(a, Quotient) and type(a.divisor) is int}
    usable = (q for q in atoms if all(_monomial_bounds(over(m, ((q, 1),)) or ())[0] >= 0 for m in monomials))
    found = sorted(usable, key=lambda q: (-_depth(q), -q.divisor))
    for i, quotient in enumerate(found if not alone else ()):
        for finer in found[i + 1 :]:
            if quotient.divisor % finer.divisor == 0 and quotient.operand.terms == finer.operand.terms:
                return quotient, ((((finer, 1),), 1),), quotient.divisor // finer.divisor
    return (found[0], found[0].operand.terms, found[0].divisor) if found else None


@lru_cache(maxsize=REMEMBERED)
def _depth(atom: Atom) -> int:
    """How deep quotients of quotients go in an atom."""
    inner = [_depth(a) for m, _ in terms_of(atom.operand) for a, _ in m] if isinstance(atom, Quotient) else [-1]
    return 1 + max(inner, default=0)


def _without(summed: Terms, quotient: Quotient, operand: Terms, divisor: int) -> Terms:
    """At least ``summed`` times the divisor, with ``divisor * quotient`` written as operand minus remainder."""
    overs = {m: over(m, ((quotient, 1),)) for m, _ in summed}
    factor = total({rest: c for m, c in summed if (rest := overs[m]) is not None})
    low, high = bounds_of(factor)
    parts = [factor] if low >= 0 or high <= 0 else [(term,) for term in factor]
    found, exact = scaled(summed, divisor), plus(operand, ((((quotient, 1),), -divisor),))
    for part in parts:
        rest = exact if bounds_of(part)[0] >= 0 else minus(exact, constant(divisor - 1))
        found = plus(found, product(part, rest))
    return found


def _parted_high(summed: Terms) -> int:
    """The same as multiples of the largest factor of a quotient, and what is left over, which cancel separately."""
    step = max((abs(c) for m, c in summed if any(isinstance(a, Quotient) for a, _ in m)), default=1)
    whole = total({m: (2 * c + step) // (2 * step) for m, c in summed})
    return greatest(whole) * step + greatest(minus(summed, scaled(whole, step)))
