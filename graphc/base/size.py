"""Sizes known at run time: named dimensions, and exact integer expressions of them in one normal form."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from graphc.base.errors import ArgumentError, TraceError
from graphc.base.size_questions import asker
from graphc.base.size_text import as_operand, is_atom, text_of

LARGEST = 2**31 - 1
"""The largest size of a dimension of which nothing else is said."""


class UndecidedSize(TraceError):
    """Code that must hold for all sizes asks for something that depends on which one it is."""


@dataclass(frozen=True)
class Dimension:
    """An atom of sizes: a named dimension and what is known of it."""

    name: str
    low: int
    high: int
    hint: int
    common: tuple[int, ...] = ()

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Quotient:
    """An atom of sizes: ``floor(operand / divisor)`` that could not be simplified; equal ones are of one form."""

    operand: Size
    divisor: Size | int

    def __eq__(self, other: object) -> bool:
        if type(other) is not Quotient or not always("==", self.operand, other.operand):
            return False
        return always("==", self.divisor, other.divisor)

    def __hash__(self) -> int:
        return hash((self.operand, self.divisor))

    def __str__(self) -> str:
        return f"({as_operand(self.operand)} // {as_operand(self.divisor)})"


Atom = Dimension | Quotient
Monomial = tuple[tuple[Atom, int], ...]
"""Atoms in the order of their texts, with powers; empty is 1."""


def _operation(function: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The methods of an operator with a float as result, plain and reflected."""
    return (
        lambda self, other: _float_operation(function, self, other),
        lambda self, other: _float_operation(function, other, self),
    )


class Size:
    """``sum(coefficient * product of atoms)``, at least one of which is a dimension; what is constant is an int.

    Two sizes are equal when their normal forms are, so when they are the same for all values of their dimensions.
    What else is asked is answered when the ranges of the dimensions decide it. While a trace assumes, it is answered
    for the hints otherwise, and noted (base.assumptions); elsewhere UndecidedSize is raised. ``isinstance`` sees an
    int; code in C that would read the number asks ``__index__``, and so assumes or raises, too.
    """

    __slots__ = ("_hash", "terms")

    terms: tuple[tuple[Monomial, int], ...]

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]):
        self.terms = terms
        self._hash = hash(terms)

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        return int

    # ---- arithmetic

    def __add__(self, other: Any) -> Any:
        if not _is_whole(other):
            return _float_operation(operator.add, self, other)
        merged = dict(self.terms)
        for monomial, coefficient in terms(other):
            merged[monomial] = merged.get(monomial, 0) + coefficient
        return _make(merged)

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + other * -1 if _is_whole(other) else _float_operation(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return self * -1 + other if _is_whole(other) else _float_operation(operator.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        if type(other) in (list, tuple, str):
            return other * operator.index(self)
        if not _is_whole(other):
            return _float_operation(operator.mul, self, other)
        merged: dict[Monomial, int] = {}
        for a, x in self.terms:
            for b, y in terms(other):
                monomial = _times(a, b)
                merged[monomial] = merged.get(monomial, 0) + x * y
        return _make(merged)

    __rmul__ = __mul__

    def __pow__(self, other: Any) -> Any:
        if type(other) is not int or other < 0:
            return _float_operation(operator.pow, self, other)
        result: Any = 1
        for _ in range(other):
            result = self * result
        return result

    def __rpow__(self, other: Any) -> Any:
        return other ** operator.index(self)

    def __floordiv__(self, other: Any) -> Any:
        return _quotient(self, other) if _is_whole(other) else _float_operation(operator.floordiv, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _quotient(other, self) if _is_whole(other) else _float_operation(operator.floordiv, other, self)

    def __mod__(self, other: Any) -> Any:
        return self - other * (self // other) if _is_whole(other) else _float_operation(operator.mod, self, other)

    def __rmod__(self, other: Any) -> Any:
        return other - self * (other // self) if _is_whole(other) else _float_operation(operator.mod, other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        return _ratio(self, other) if _is_whole(other) else _float_operation(operator.truediv, self, other)

    __rtruediv__ = _operation(operator.truediv)[1]

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __round__(self, digits: Any = None) -> Any:
        return self

    __trunc__ = __floor__ = __ceil__ = __copy__ = __deepcopy__ = __pos__ = __round__

    # ---- questions

    def __eq__(self, other: object) -> bool:
        if type(other) is Size and self.terms == other.terms:
            return True
        return _ask("==", self, other) if _is_whole(other) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other if _is_whole(other) else NotImplemented

    def __lt__(self, other: Any) -> bool:
        return not _ask("<=", other, self) if _is_whole(other) else NotImplemented

    def __le__(self, other: Any) -> bool:
        return _ask("<=", self, other) if _is_whole(other) else NotImplemented

    def __gt__(self, other: Any) -> bool:
        return not _ask("<=", self, other) if _is_whole(other) else NotImplemented

    def __ge__(self, other: Any) -> bool:
        return _ask("<=", other, self) if _is_whole(other) else NotImplemented

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        return self._hash

    # ---- what needs the value

    def __index__(self) -> int:
        return _specialised(self)

    __int__ = __index__

    def __float__(self) -> float:
        return float(_specialised(self))

    def __str__(self) -> str:
        return text_of(self.terms)

    def __repr__(self) -> str:
        return str(self)

    def __format__(self, spec: str) -> str:
        return format(_specialised(self), spec) if spec else str(self)

    def __reduce__(self) -> Any:
        return Size, (self.terms,)

    def __getattr__(self, name: str) -> Any:
        if name in ("real", "numerator"):
            return self
        if name in ("imag", "denominator"):
            return int(name == "denominator")
        raise AttributeError(f"a size has no attribute {name!r}")


class SizeNumber:
    """A float that is computed from sizes: an operation, and its operands. Tensors take it; its value is not known
    before a call."""

    __slots__ = ("function", "operands")

    def __init__(self, function: Callable[..., Any], operands: tuple[Any, ...]):
        self.function = function
        self.operands = operands

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        return float

    def at(self, values: Mapping[Dimension, int] | None) -> float:
        """The number for sizes of the dimensions; None: for the hints."""
        return self.function(*[x.at(values) if type(x) is SizeNumber else at(x, values) for x in self.operands])

    __add__, __radd__ = _operation(operator.add)
    __sub__, __rsub__ = _operation(operator.sub)
    __mul__, __rmul__ = _operation(operator.mul)
    __truediv__, __rtruediv__ = _operation(operator.truediv)
    __pow__, __rpow__ = _operation(operator.pow)

    def __neg__(self) -> Any:
        return _float_operation(operator.sub, -0.0, self)

    def __float__(self) -> float:
        return self.function(*[float(x) if type(x) is SizeNumber else _specialised(x) for x in self.operands])

    def __int__(self) -> int:
        return int(float(self))

    def __bool__(self) -> bool:
        return bool(float(self))

    def __eq__(self, other: object) -> bool:
        return float(self) == other

    def __lt__(self, other: Any) -> bool:
        return float(self) < other

    def __le__(self, other: Any) -> bool:
        return float(self) <= other

    def __gt__(self, other: Any) -> bool:
        return float(self) > other

    def __ge__(self, other: Any) -> bool:
        return float(self) >= other

    def __hash__(self) -> int:
        return hash((self.function, self.operands))

    def __repr__(self) -> str:
        return f"{self.function.__name__}({', '.join(map(str, self.operands))})"


_OPERANDS = frozenset({int, float, bool, Size, SizeNumber})


def _float_operation(function: Callable[..., Any], *operands: Any) -> Any:
    """An operation on numbers of which the result is a float."""
    if not all(type(x) in _OPERANDS for x in operands):
        return NotImplemented
    return SizeNumber(function, operands)


def is_size(value: Any) -> bool:
    """Whether a number is a size that is known at run time."""
    return type(value) is Size


def sizes_in(number: SizeNumber) -> Iterator[Size]:
    """The sizes from which a number is computed."""
    for x in number.operands:
        if type(x) is SizeNumber:
            yield from sizes_in(x)
        elif type(x) is Size:
            yield x


# ---- normal form


def _is_whole(value: Any) -> bool:
    return type(value) in (Size, int, bool)


def terms(value: Any) -> tuple[tuple[Monomial, int], ...]:
    """The terms of a size or a number."""
    return value.terms if type(value) is Size else (((), int(value)),)


def _make(terms: Mapping[Monomial, int]) -> Any:
    kept = [(m, c) for m, c in terms.items() if c]
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    return Size(tuple(sorted(kept, key=lambda t: _order(t[0]))))


@lru_cache(maxsize=8192)
def _order(monomial: Monomial) -> tuple[Any, ...]:
    """Larger powers first, so constants last."""
    return (-sum(p for _, p in monomial), [(str(a), -p) for a, p in monomial])


def _times(a: Monomial, b: Monomial) -> Monomial:
    if not a or not b:
        return a or b
    powers = dict(a)
    for atom, power in b:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda t: str(t[0])))


def _over(a: Monomial, b: Monomial) -> Monomial | None:
    """a / b, None where that has negative powers."""
    powers = dict(a)
    for atom, power in b:
        left = powers.get(atom, 0) - power
        if left < 0:
            return None
        powers[atom] = left
    return tuple((atom, power) for atom, power in powers.items() if power)


def _quotient(a: Any, b: Any) -> Any:
    """floor(a / b) of sizes, of which b is positive where it is not a number."""
    if type(b) is not Size and b == 0:
        raise ArgumentError(f"a size is divided by {b}")
    a, b = (-a, -b) if type(b) is not Size and b < 0 else (a, b)
    if type(a) is not Size and type(b) is not Size:
        return a // b
    whole, rest = divided(a, b)
    if type(rest) is not Size and type(b) is not Size:
        return whole + rest // b
    if _is_proven(0, rest) and _is_proven(rest + 1, b):
        return whole
    if _is_proven(-b, rest) and _is_proven(rest, -1):
        return whole - 1
    return whole + (_quotient_by_number(rest, b) if type(b) is int else _atom_quotient(rest, b))


def _ratio(a: Any, b: Any) -> Any:
    """a / b, a float where that is the same for all sizes."""
    first, second = terms(a)[0][1], terms(b)[0][1]
    if type(b) is Size and always("==", a * second, b * first):
        return first / second
    return _float_operation(operator.truediv, a, b)


def _atom_quotient(a: Size, b: Any) -> Size:
    return Size(((((Quotient(a, b), 1),), 1),))


def _quotient_by_number(a: Size, b: int) -> Any:
    """floor(a / b) where no multiple of b can be taken out: common factors go, and quotients of quotients are one."""
    factor = math.gcd(b, *[c for m, c in a.terms if m])
    if factor > 1:
        a, b = _make({m: c // factor for m, c in a.terms}), b // factor
        if b == 1:
            return a
    if is_atom(a.terms):
        atom = a.terms[0][0][0][0]
        if isinstance(atom, Quotient) and type(atom.divisor) is not Size:
            return _quotient(atom.operand, atom.divisor * b)
    return _atom_quotient(a, b)


def divided(a: Any, b: Any) -> tuple[Any, Any]:
    """(q, r) with a == q * b + r, where what is divisible is in q. Of sizes r may be larger than b."""
    first, factor = terms(b)[0]
    whole: dict[Monomial, int] = {}
    rest = a
    for monomial, _ in terms(a):
        over, left = _over(monomial, first), next((c for m, c in terms(rest) if m == monomial), 0)
        part = left // factor if type(b) is not Size or left % factor == 0 else 0
        if over is not None and part:
            piece = _make({over: part})
            whole[over] = whole.get(over, 0) + part
            rest = rest - piece * b
    return _make(whole), rest


# ---- ranges


def bounds(size: Any) -> tuple[int, int]:
    """Numbers between which a size lies, ends included; conservative."""
    if type(size) is not Size:
        return int(size), int(size)
    return -_greatest(-size), _greatest(size)


def _greatest(size: Any, parted: bool = False) -> int:
    return _greatest_of(terms(size), parted)


@lru_cache(maxsize=8192)
def _greatest_of(summed: tuple[tuple[Monomial, int], ...], parted: bool) -> int:
    constant, factor = sum(c for m, c in summed if not m), math.gcd(*[c for m, c in summed if m])
    if factor > 1 or (factor and constant):
        return constant + factor * _greatest(_make({m: c // factor for m, c in summed if m}), parted)
    best = min(_interval_high(size := _make(dict(summed))), _shifted_high(size))
    most = _make({m: c for m, c in summed if _order(m)[0] == _order(summed[0][0])[0]})
    if (
        not parted and type(size - most) is Size
    ):  # products of more atoms for themselves: their common factor can be taken out
        best = min(best, _greatest(most) + _greatest(size - most))
    found = _quotient_in(size)
    return best if found is None else min(best, _greatest(_without(size, *found), True) // found[2])


@lru_cache(maxsize=8192)
def _atom_bounds(atom: Atom) -> tuple[int, int]:
    if isinstance(atom, Dimension):
        return atom.low, atom.high
    low, high = bounds(atom.operand)
    small, large = bounds(atom.divisor)
    small = max(1, small)
    return min(low // small, low // large), max(high // small, high // large)


@lru_cache(maxsize=8192)
def _monomial_bounds(monomial: Monomial) -> tuple[int, int]:
    low = high = 1
    for atom, power in monomial:
        a, b = _atom_bounds(atom)
        for _ in range(power):
            ends = (low * a, low * b, high * a, high * b)
            low, high = min(ends), max(ends)
    return low, high


def _interval_high(size: Any) -> int:
    ranges = [(c, *_monomial_bounds(m)) for m, c in terms(size)]
    return sum(c * (b if c > 0 else a) for c, a, b in ranges)


def _shifted_high(size: Any) -> int:
    """The same with atoms as what they are above their least value: products then cancel against each other."""
    powers: dict[Monomial, int] = {}
    for monomial, coefficient in terms(size):
        parts: dict[Monomial, int] = {(): coefficient}
        for atom, power in monomial:
            low = _atom_bounds(atom)[0]
            for _ in range(power):
                grown: dict[Monomial, int] = {}
                for m, c in parts.items():
                    up = _times(m, ((atom, 1),))
                    grown[up] = grown.get(up, 0) + c
                    grown[m] = grown.get(m, 0) + c * low
                parts = grown
        for m, c in parts.items():
            powers[m] = powers.get(m, 0) + c
    most = {m: math.prod((_atom_bounds(a)[1] - _atom_bounds(a)[0]) ** p for a, p in m) for m in powers}
    return sum(c * (most[m] if c > 0 else 0 if m else 1) for m, c in powers.items())


def _quotient_in(size: Any) -> tuple[Quotient, Any, Any] | None:
    """A quotient by a number of which no multiple may be negative, and what it is a quotient of: another one with the
    same operand where there is one, else its operand."""
    monomials = [m for m, _ in terms(size)]
    atoms = {a: 0 for m in monomials for a, _ in m if isinstance(a, Quotient) and type(a.divisor) is int}
    usable = (q for q in atoms if all(_monomial_bounds(_over(m, ((q, 1),)) or ())[0] >= 0 for m in monomials))
    found = sorted(usable, key=lambda q: (-_depth(q), -q.divisor))
    for i, quotient in enumerate(found):
        for finer in found[i + 1 :]:
            if quotient.divisor % finer.divisor == 0 and quotient.operand.terms == finer.operand.terms:
                return quotient, _make({((finer, 1),): 1}), quotient.divisor // finer.divisor
    return (found[0], found[0].operand, found[0].divisor) if found else None


def _depth(atom: Atom) -> int:
    """How deep quotients of quotients go in an atom."""
    inner = [_depth(a) for m, _ in terms(atom.operand) for a, _ in m] if isinstance(atom, Quotient) else [-1]
    return 1 + max(inner, default=0)


def _without(size: Any, quotient: Quotient, operand: Any, divisor: Any) -> Any:
    """At least ``size`` times the divisor, with ``divisor * quotient`` written as operand minus remainder."""
    overs = {m: _over(m, ((quotient, 1),)) for m, _ in terms(size)}
    parts = [_make({rest: c}) for m, c in terms(size) if (rest := overs[m]) is not None]
    factor = sum(parts)
    low, high = bounds(factor)
    if low >= 0 or high <= 0:
        parts = [factor]
    found = size * divisor
    for part in parts:
        least = bounds(part)[0]
        found = found + part * (operand - (0 if least >= 0 else divisor - 1) - _make({((quotient, 1),): divisor}))
    return found


def _is_proven(a: Any, b: Any) -> bool:
    """Whether a <= b for all sizes. What does not hold for the hints need not be proven, and most proofs are short."""
    over = a - b
    if type(over) is not Size:
        return over <= 0
    return at(over, None) <= 0 and (_interval_high(over) <= 0 or _greatest(over) <= 0 or _parted_high(over) <= 0)


def _parted_high(size: Any) -> int:
    """The same as multiples of the largest factor of a quotient, and what is left over, which cancel separately."""
    step = max((abs(c) for m, c in terms(size) if any(isinstance(a, Quotient) for a, _ in m)), default=1)
    whole = _make({m: (2 * c + step) // (2 * step) for m, c in terms(size)})
    return _greatest(whole) * step + _greatest(size - whole * step)


def is_one(size: Any) -> bool:
    """Whether a size is 1 whatever the dimensions are: what holds for every size need not ask whether it is 1."""
    return type(size) is int and size == 1


def always(relation: str, a: Any, b: Any) -> bool:
    """Whether a relation (``==`` or ``<=``) holds for all sizes; nothing is assumed."""
    if relation == "==":
        return a.terms == b.terms if type(a) is Size and type(b) is Size else type(a) is type(b) and a == b
    return _is_proven(a, b)


# ---- values


def at(size: Any, values: Mapping[Dimension, int] | None) -> int:
    """A size for sizes of its dimensions; None: for the hints."""
    if type(size) is not Size:
        return size
    return sum(c * math.prod(_atom_at(a, values) ** p for a, p in m) for m, c in size.terms)


def _atom_at(atom: Atom, values: Mapping[Dimension, int] | None) -> int:
    if isinstance(atom, Quotient):
        return at(atom.operand, values) // at(atom.divisor, values)
    return atom.hint if values is None else values[atom]


def hint(size: Any) -> int:
    """What a size is when its dimensions have the sizes that they are expected to have; for estimates."""
    return at(size, None)


# ---- questions


def _ask(relation: str, a: Any, b: Any) -> bool:
    if (asked := asker.get()) is None and relation == "==":
        return always(relation, a, b)
    difference = b - a
    if type(difference) is not Size:
        return difference == 0 if relation == "==" else difference >= 0
    low, high = bounds(difference)
    if low > 0 or high < 0:
        return relation == "<=" and low > 0
    if relation == "<=" and low >= 0:
        return True
    if asked is not None:
        return asked.ask(relation, a, b)
    raise UndecidedSize(f"{a} {relation} {b} depends on the sizes of a call")


def _specialised(size: Any) -> Any:
    """The number that a size is, which is assumed from now on; plain numbers as they are."""
    if type(size) is not Size:
        return size
    asked = asker.get()
    if asked is None:
        raise UndecidedSize(f"the size {size} is a number in calls only")
    return asked.value(size)
