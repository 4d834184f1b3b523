"""Terms of sizes: sums of products of named dimensions and quotients in one order, and arithmetic with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

from graphc.base.locks import Lock
from graphc.base.sizes.size_text import as_operand

REMEMBERED = 1024
"""Results of each operation on terms that are kept: a program has few different sizes, and asks often."""

_lock = Lock()
_atoms: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()
"""All atoms in use, by what they consist of: equal ones are one object, and so compare and hash as fast as any."""


def _one(cls: type, key: tuple[Any, ...], **fields: Any) -> Any:
    with _lock:
        found = _atoms.get(key)
        if found is None:
            found = object.__new__(cls)
            found.__dict__.update(fields)
            _atoms[key] = found
        return found


@dataclass(frozen=True, eq=False)
class Dimension:
    """An atom of sizes: a named dimension and what is known of it."""

    name: str
    low: int
    high: int
    hint: int
    common: tuple[int, ...] = ()

    def __new__(cls, name: str, low: int, high: int, hint: int, common: tuple[int, ...] = ()) -> Dimension:
        """The one that there is."""
        return _one(cls, (name, low, high, hint, common), name=name, low=low, high=high, hint=hint, common=common)

    def __reduce__(self) -> Any:
        return Dimension, (self.name, self.low, self.high, self.hint, self.common)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Quotient:
    """An atom of sizes: ``floor(operand / divisor)`` that could not be simplified; equal ones are of one form."""

    operand: Any
    """A size (see base.size) or a number."""
    divisor: Any
    """A size or a number."""

    def __new__(cls, operand: Any, divisor: Any) -> Quotient:
        """The one that there is."""
        return _one(cls, (terms_of(operand), terms_of(divisor)), operand=operand, divisor=divisor)

    def __reduce__(self) -> Any:
        return Quotient, (self.operand, self.divisor)

    def __str__(self) -> str:
        return f"({as_operand(self.operand)} // {as_operand(self.divisor)})"


Atom = Dimension | Quotient
Monomial = tuple[tuple[Atom, int], ...]
"""Atoms in the order of their texts, with powers; empty is 1."""
Terms = tuple[tuple[Monomial, int], ...]
"""Monomials in their order, with coefficients that are not 0; empty is 0."""


def terms_of(value: Any) -> Terms:
    """The terms of a size or a number."""
    return constant(int(value)) if type(value) in (int, bool) else value.terms


def constant(value: int) -> Terms:
    """The terms of a number."""
    return (((), value),) if value else ()


def total(parts: Mapping[Monomial, int]) -> Terms:
    """The terms of a sum."""
    kept = [term for term in parts.items() if term[1]]
    if len(kept) > 1:
        kept.sort(key=_place)
    return tuple(kept)


def _place(term: tuple[Monomial, int]) -> tuple[Any, ...]:
    return order(term[0])


@lru_cache(maxsize=REMEMBERED)
def order(monomial: Monomial) -> tuple[Any, ...]:
    """Larger powers first, so constants last."""
    return (-sum(p for _, p in monomial), [(_text(a), -p) for a, p in monomial])


_text = lru_cache(maxsize=REMEMBERED)(str)


@lru_cache(maxsize=REMEMBERED)
def plus(a: Terms, b: Terms) -> Terms:
    """a + b."""
    merged = dict(a)
    for monomial, coefficient in b:
        merged[monomial] = merged.get(monomial, 0) + coefficient
    return total(merged)


def scaled(a: Terms, factor: int) -> Terms:
    """a * factor."""
    if factor == 1:
        return a
    return tuple([(monomial, coefficient * factor) for monomial, coefficient in a]) if factor else ()


def minus(a: Terms, b: Terms) -> Terms:
    """a - b."""
    return plus(a, scaled(b, -1))


@lru_cache(maxsize=REMEMBERED)
def product(a: Terms, b: Terms) -> Terms:
    """a * b."""
    merged: dict[Monomial, int] = {}
    for m, x in a:
        for n, y in b:
            monomial = times(m, n)
            merged[monomial] = merged.get(monomial, 0) + x * y
    return total(merged)


@lru_cache(maxsize=REMEMBERED)
def times(a: Monomial, b: Monomial) -> Monomial:
    """a * b."""
    if not a or not b:
        return a or b
    powers = dict(a)
    for atom, power in b:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda factor: _text(factor[0])))


def over(a: Monomial, b: Monomial) -> Monomial | None:
    """a / b, None where that has negative powers."""
    powers = dict(a)
    for atom, power in b:
        left = powers.get(atom, 0) - power
        if left < 0:
            return None
        powers[atom] = left
    return tuple([(atom, power) for atom, power in powers.items() if power])


@lru_cache(maxsize=REMEMBERED)
def dimensions_of(terms: Terms) -> tuple[Dimension, ...]:
    """The dimensions in terms, those inside of quotients too, each once."""
    found: dict[Dimension, None] = {}
    for atom in (a for monomial, _ in terms for a, _ in monomial):
        if isinstance(atom, Quotient):
            found.update(dict.fromkeys(dimensions_of((*terms_of(atom.operand), *terms_of(atom.divisor)))))
        else:
            found[atom] = None
    return tuple(found)


def evaluated(terms: Terms, values: Mapping[Dimension, Any]) -> Any:
    """What terms are for these sizes of their dimensions."""
    return sum([c * math.prod([_atom_at(atom, values) ** power for atom, power in m]) for m, c in terms])


def _atom_at(atom: Atom, values: Mapping[Dimension, Any]) -> Any:
    if isinstance(atom, Dimension):
        return values[atom]
    # What is divided by a size of 0 is not used in calls with that; kernels divide by 1 instead, too.
    divisor = atom.divisor if type(atom.divisor) is int else evaluated(atom.divisor.terms, values)
    return evaluated(terms_of(atom.operand), values) // (1 if type(divisor) is int and divisor == 0 else divisor)


class _Hints(dict[Dimension, int]):
    """The sizes that dimensions are expected to have."""

    def __missing__(self, dimension: Dimension) -> int:
        return dimension.hint


_HINTS = _Hints()


@lru_cache(maxsize=REMEMBERED)
def expected(terms: Terms) -> int:
    """What terms are when dimensions have the sizes that they are expected to have."""
    return evaluated(terms, _HINTS)
