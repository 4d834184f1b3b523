"""Terms of symbolic sizes: sums of products of dimensions and quotients in canonical order, and their arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

from graphc.base.locks import Lock
from graphc.base.records import dataclass
from graphc.base.sizes.size_text import as_operand, quoted

REMEMBERED = 1024
"""Capacity of the cache of each operation on terms: a program has few different sizes and asks often."""

_lock = Lock()
_atoms: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()
"""Atoms in use, by content (hash consing): equal atoms are one object, so comparing and hashing them is fast."""


def _one(cls: type, key: tuple[Any, ...], **fields: Any) -> Any:
    with _lock:
        atom = _atoms.get(key)
        if atom is None:
            atom = object.__new__(cls)
            atom.__dict__.update(fields)
            _atoms[key] = atom
        return atom


@dataclass(frozen=True, eq=False, init=False)
class Dimension:
    """Atom of sizes: a named dimension with its range and hint."""

    name: str
    low: int
    high: int
    hint: int
    common: tuple[int, ...] = ()

    def __new__(
        cls, name: str, low: int, high: int, hint: int, common: tuple[int, ...] = (), is_hinted: bool = True
    ) -> Dimension:
        """Return the unique object with these fields."""
        fields = {"name": name, "low": low, "high": high, "hint": hint, "common": common, "_is_hinted": is_hinted}
        return _one(cls, tuple(fields.values()), **fields)

    @property
    def is_hinted(self) -> bool:
        """Whether the hint was given or found; else the size in the first call takes its place. It is no field:
        files and texts have dimensions with hints only."""
        return self.__dict__["_is_hinted"]

    def __reduce__(self) -> Any:
        return Dimension, (self.name, self.low, self.high, self.hint, self.common, self.is_hinted)

    def __str__(self) -> str:
        return quoted(self.name)


@dataclass(frozen=True, eq=False)
class Quotient:
    """Atom of sizes: ``floor(operand / divisor)`` that could not be simplified; equal quotients have the same form."""

    operand: Any
    """Size (see base.sizes.size) or int."""
    divisor: Any
    """Size or int."""

    def __new__(cls, operand: Any, divisor: Any) -> Quotient:
        """Return the unique object with these fields."""
        return _one(cls, (terms_of(operand), terms_of(divisor)), operand=operand, divisor=divisor)

    def __reduce__(self) -> Any:
        return Quotient, (self.operand, self.divisor)

    def __str__(self) -> str:
        return f"({as_operand(self.operand)} // {as_operand(self.divisor)})"

    @property
    def operands(self) -> tuple[Any, ...]:
        """The sizes that it is computed from."""
        return self.operand, self.divisor


@dataclass(frozen=True, eq=False)
class Positive:
    """Atom of sizes: the positive part ``max(operand, 0)``, where the sign of the operand depends on the call.

    All minima and maxima are sums with it: ``max(a, b) == b + max(a - b, 0)``, ``min(a, b) == a - max(a - b, 0)``.
    """

    operand: Any
    """Size whose first coefficient is positive."""

    def __new__(cls, operand: Any) -> Positive:
        """Return the unique object with this operand."""
        return _one(cls, (terms_of(operand),), operand=operand)

    def __reduce__(self) -> Any:
        return Positive, (self.operand,)

    def __str__(self) -> str:
        return f"max({self.operand}, 0)"

    @property
    def operands(self) -> tuple[Any, ...]:
        """The sizes that it is computed from."""
        return (self.operand,)


Atom = Dimension | Quotient | Positive
Monomial = tuple[tuple[Atom, int], ...]
"""Atoms ordered by their text, positive parts last, with powers; empty is 1."""
Terms = tuple[tuple[Monomial, int], ...]
"""Monomials in order, with coefficients other than 0; empty is 0."""


def terms_of(value: Any) -> Terms:
    """Return the terms of a size or an int."""
    return constant(int(value)) if type(value) in (int, bool) else value.terms


def constant(value: int) -> Terms:
    """Return the terms of an int."""
    return (((), value),) if value else ()


def total(coefficients: Mapping[Monomial, int]) -> Terms:
    """Return the terms of a sum, without those whose coefficient is 0, in order."""
    nonzero = [term for term in coefficients.items() if term[1]]
    if len(nonzero) > 1:
        nonzero.sort(key=_term_order)
    return tuple(nonzero)


def _term_order(term: tuple[Monomial, int]) -> tuple[Any, ...]:
    return order(term[0])


@lru_cache(maxsize=REMEMBERED)
def order(monomial: Monomial) -> tuple[Any, ...]:
    """Return the sort key of a monomial: highest degree first, positive parts after others, constants
    last."""
    return (-sum(p for _, p in monomial), [(*_atom_order(a), -p) for a, p in monomial])


@lru_cache(maxsize=REMEMBERED)
def _atom_order(atom: Atom) -> tuple[bool, str]:
    return type(atom) is Positive, str(atom)


@lru_cache(maxsize=REMEMBERED)
def plus(a: Terms, b: Terms) -> Terms:
    """Return a + b."""
    merged = dict(a)
    for monomial, coefficient in b:
        merged[monomial] = merged.get(monomial, 0) + coefficient
    return total(merged)


def scaled(a: Terms, factor: int) -> Terms:
    """Return a * factor."""
    if factor == 1:
        return a
    return tuple([(monomial, coefficient * factor) for monomial, coefficient in a]) if factor else ()


def minus(a: Terms, b: Terms) -> Terms:
    """Return a - b."""
    return plus(a, scaled(b, -1))


@lru_cache(maxsize=REMEMBERED)
def product(a: Terms, b: Terms) -> Terms:
    """Return a * b."""
    merged: dict[Monomial, int] = {}
    for m, x in a:
        for n, y in b:
            monomial = times(m, n)
            merged[monomial] = merged.get(monomial, 0) + x * y
    return total(merged)


@lru_cache(maxsize=REMEMBERED)
def times(a: Monomial, b: Monomial) -> Monomial:
    """Return the product of two monomials."""
    if not a or not b:
        return a or b
    powers = dict(a)
    for atom, power in b:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda factor: _atom_order(factor[0])))


def over(a: Monomial, b: Monomial) -> Monomial | None:
    """Return the quotient of two monomials, or None if it has negative powers."""
    powers = dict(a)
    for atom, power in b:
        remaining = powers.get(atom, 0) - power
        if remaining < 0:
            return None
        powers[atom] = remaining
    return tuple([(atom, power) for atom, power in powers.items() if power])


@lru_cache(maxsize=REMEMBERED)
def dimensions_of(terms: Terms) -> tuple[Dimension, ...]:
    """Return the dimensions in terms, including those inside of other atoms, each once."""
    unique: dict[Dimension, None] = {}
    for atom in (a for monomial, _ in terms for a, _ in monomial):
        if isinstance(atom, Dimension):
            unique[atom] = None
        else:
            unique.update(dict.fromkeys(d for size in atom.operands for d in dimensions_of(terms_of(size))))
    return tuple(unique)


def evaluated(terms: Terms, values: Mapping[Dimension, Any]) -> Any:
    """Return the value of terms for sizes of their dimensions."""
    return sum([c * math.prod([_atom_at(atom, values) ** power for atom, power in m]) for m, c in terms])


def _atom_at(atom: Atom, values: Mapping[Dimension, Any]) -> Any:
    if isinstance(atom, Dimension):
        return values[atom]
    if isinstance(atom, Positive):
        number = evaluated(terms_of(atom.operand), values)
        return max(number, 0) if type(number) is int else number.positive()
    # A quotient by a size of 0 is not used in calls with that size. Kernels divide by 1 instead, and so does this.
    divisor = atom.divisor if type(atom.divisor) is int else evaluated(atom.divisor.terms, values)
    return evaluated(terms_of(atom.operand), values) // (1 if type(divisor) is int and divisor == 0 else divisor)


class _Hints(dict[Dimension, int]):
    """Hints of dimensions as their sizes."""

    def __missing__(self, dimension: Dimension) -> int:
        return dimension.hint


_HINTS = _Hints()


@lru_cache(maxsize=REMEMBERED)
def expected(terms: Terms) -> int:
    """Return the value of terms for the hints of their dimensions."""
    return evaluated(terms, _HINTS)
