"""Symbolic sizes: exact integer expressions of named dimensions, in one normal form.

The graph keeps them as sizes, so that one program serves all calls. ``base.sizes.symbolic`` has the numbers that a
trace records and evaluates in Python before each call.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from graphc.base.errors import ArgumentError, TraceError
from graphc.base.sizes.size_bounds import atom_bounds, bounds_of, never_positive
from graphc.base.sizes.size_pieces import Pieces, pieces_of
from graphc.base.sizes.size_questions import asker
from graphc.base.sizes.size_terms import (
    REMEMBERED,
    Dimension,
    Monomial,
    Positive,
    Quotient,
    Terms,
    constant,
    evaluated,
    expected,
    minus,
    over,
    plus,
    product,
    scaled,
    terms_of,
    total,
)
from graphc.base.sizes.size_text import is_atom, text_of

LARGEST = 2**31 - 1
"""Default upper bound of a dimension."""


class UndecidedSize(TraceError):
    """Code that must hold for all sizes needs an answer that depends on the size."""

    question: tuple[str, Any, Any] | None = None
    """The comparison without an answer: its relation and both sizes. None for the number of a size."""

    @staticmethod
    def of(relation: str, a: Any, b: Any) -> UndecidedSize:
        """Return the error of a comparison."""
        error = UndecidedSize(f"{a} {relation} {b} depends on the sizes of a call")
        error.question = relation, a, b
        return error


def _operation(function: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the methods of an operator with a float result, plain and reflected."""
    return (
        lambda self, other: _float_operation(function, self, other),
        lambda self, other: _float_operation(function, other, self),
    )


class Size:
    """Symbolic integer ``sum(coefficient * product of atoms)`` with at least one dimension; constants are ints.

    Two sizes are equal if their normal forms are, hence for all values of their dimensions. Other comparisons are
    answered if the ranges of the dimensions decide them. Otherwise a trace answers them for the hints and records an
    assumption (base.sizes.assumptions); outside of a trace they raise UndecidedSize. ``isinstance`` sees an int. C code
    that would read the number calls ``__index__``, and so assumes or raises too.
    """

    __slots__ = ("_hash", "terms")

    terms: Terms

    def __init__(self, terms: Terms):
        self.terms = terms
        self._hash = hash(terms)

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        return int

    # ---- arithmetic

    def __add__(self, other: Any) -> Any:
        if not _is_whole(other):
            return _float_operation(operator.add, self, other)
        if type(other) is Size:
            return _make(plus(self.terms, other.terms))
        return Size(plus(self.terms, constant(int(other)))) if other else self

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        if type(other) is Size:
            return _make(minus(self.terms, other.terms))
        return self + -other if _is_whole(other) else _float_operation(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return self * -1 + other if _is_whole(other) else _float_operation(operator.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        if type(other) in (list, tuple, str):
            return other * operator.index(self)
        if not _is_whole(other):
            return _float_operation(operator.mul, self, other)
        if type(other) is Size:
            return Size(product(self.terms, other.terms))
        return Size(scaled(self.terms, int(other))) if other else 0

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

    def sqrt(self) -> Any:
        """Return the square root; ``numpy.sqrt`` calls it."""
        return root(self)

    def __abs__(self) -> Any:
        return self + 2 * (-self).positive()

    def positive(self) -> Any:
        """Return the maximum of the size and 0."""
        return _make(_positive(self.terms))

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
        return _text_of(self.terms)

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


_text_of = lru_cache(maxsize=REMEMBERED)(text_of)


class SizeNumber:
    """Symbolic float: an operation on sizes and numbers. Operations on tensors accept it; its value is known in calls
    only."""

    __slots__ = ("function", "operands")

    def __init__(self, function: Callable[..., Any], operands: tuple[Any, ...]):
        self.function = function
        self.operands = operands

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        return float

    def at(self, values: Mapping[Dimension, int] | None) -> float:
        """Return the value for sizes of the dimensions; None: for the hints."""
        return self.function(*[x.at(values) if type(x) is SizeNumber else at(x, values) for x in self.operands])

    __add__, __radd__ = _operation(operator.add)
    __sub__, __rsub__ = _operation(operator.sub)
    __mul__, __rmul__ = _operation(operator.mul)
    __truediv__, __rtruediv__ = _operation(operator.truediv)
    __pow__, __rpow__ = _operation(operator.pow)

    def sqrt(self) -> Any:
        """Return the square root; ``numpy.sqrt`` calls it."""
        return root(self)

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
        return _compare(operator.lt, self, other)

    def __le__(self, other: Any) -> bool:
        return _compare(operator.le, self, other)

    def __gt__(self, other: Any) -> bool:
        return _compare(operator.gt, self, other)

    def __ge__(self, other: Any) -> bool:
        return _compare(operator.ge, self, other)

    def __floor__(self) -> Any:
        ratio = fraction(self, in_floats=True)
        return math.floor(float(self)) if ratio is None else ratio[0] // ratio[1]

    def __ceil__(self) -> Any:
        ratio = fraction(self, in_floats=True)
        return math.ceil(float(self)) if ratio is None else -(-ratio[0] // ratio[1])

    def __trunc__(self) -> Any:
        return math.floor(self) if self >= 0 else math.ceil(self)

    def __hash__(self) -> int:
        return hash((self.function, self.operands))

    def __repr__(self) -> str:
        return f"{self.function.__name__}({', '.join(map(str, self.operands))})"


_OPERANDS = frozenset({int, float, bool, Size, SizeNumber})


def _float_operation(function: Callable[..., Any], *operands: Any) -> Any:
    """Return a SizeNumber for an operation with a float result; NotImplemented for other operands."""
    if not all(type(x) in _OPERANDS for x in operands):
        return NotImplemented
    return SizeNumber(function, operands)


def fraction(value: Any, in_floats: bool = False) -> tuple[Any, Any] | None:
    """Return a number computed from sizes as a numerator and a positive denominator, both integers; None if it is not a
    fraction, or an infinite number.

    ``in_floats``: also None unless floats hold all operands exactly, so that only the outermost division rounds.
    """
    if type(value) is not SizeNumber:
        ratio = (value, 1) if type(value) is Size else value.as_integer_ratio() if math.isfinite(value) else None
        return ratio if ratio is not None and (type(value) is Size or ratio[1] <= _LARGEST_DENOMINATOR) else None
    if value.function not in _FRACTION_RULES:
        return None
    ratios = [ratio for x in value.operands if (ratio := fraction(x, in_floats)) is not None]
    if len(ratios) < 2 or (in_floats and any(type(d) is Size or d & (d - 1) for _, d in ratios)):
        return None
    (a, b), (c, d) = ratios
    numerator, denominator = _FRACTION_RULES[value.function](a, b, c, d)
    if type(denominator) is not Size and denominator == 0:
        return None
    return (numerator, denominator) if denominator > 0 else (-numerator, -denominator)


_LARGEST_DENOMINATOR = 1 << 20
"""Denominator up to which a float counts as a fraction: 0.5 and 1.75 do, 0.1 in binary does not."""
_FRACTION_RULES: dict[Any, Callable[..., tuple[Any, Any]]] = {
    operator.add: lambda a, b, c, d: (a * d + c * b, b * d),
    operator.sub: lambda a, b, c, d: (a * d - c * b, b * d),
    operator.mul: lambda a, b, c, d: (a * c, b * d),
    operator.truediv: lambda a, b, c, d: (a * d, b * c),
}
"""Numerator and denominator of the result for a/b and c/d."""


def _compare(relation: Callable[[Any, Any], bool], a: SizeNumber, b: Any) -> bool:
    """Compare exactly where floats hold both numbers exactly; otherwise as floats, whose values are then assumed."""
    ratio = fraction(a - b, in_floats=True) if type(b) in _OPERANDS else None
    return relation(float(a), b) if ratio is None else relation(ratio[0], 0)


def root(number: Any) -> Any:
    """Return the square root of a number or a symbolic one."""
    return _float_operation(math.sqrt, number) if type(number) in (Size, SizeNumber) else math.sqrt(number)


def is_size(value: Any) -> bool:
    """Return whether a value is a symbolic size."""
    return type(value) is Size


# ---- normal form


def _is_whole(value: Any) -> bool:
    return type(value) in (Size, int, bool)


def terms(value: Any) -> Terms:
    """Return the terms of a size or a number; 0 has one term, 0 times the empty monomial."""
    return value.terms if type(value) is Size else (((), int(value)),)


def _make(terms: Terms) -> Any:
    """Return the size with these terms, or an int if they are constant."""
    if len(terms) > 1 or (terms and terms[0][0]):
        return Size(terms)
    return terms[0][1] if terms else 0


def _quotient(a: Any, b: Any) -> Any:
    """Return floor(a / b). Divisors of Quotients are never negative: a trace asks for the sign of one that may be."""
    if type(b) is not Size and b == 0:
        raise ArgumentError(f"a size is divided by {b}")
    if (type(b) is not Size or (asker.get() is not None and bounds(b)[0] < 0)) and b < 0:
        return _quotient(-a, -b)
    if type(a) is not Size and type(b) is not Size:
        return a // b
    quotient, rest = divided(a, b)
    if type(rest) is not Size and rest == 0:
        return quotient
    if type(b) is not Size:
        low, high = [end // b for end in bounds(rest)]
        if low == high:
            return quotient + low
    if _is_proven(0, rest) and _is_proven(rest + 1, b):
        return quotient
    if _is_proven(-b, rest) and _is_proven(rest, -1):
        return quotient - 1
    return quotient + (_quotient_by_number(rest, b) if type(b) is int else _atom_quotient(rest, b))


def _ratio(a: Any, b: Any) -> Any:
    """Return a / b, as a float if it is the same for all sizes."""
    first, second = terms(a)[0][1], terms(b)[0][1]
    if type(b) is Size and always("==", a * second, b * first):
        return first / second
    return _float_operation(operator.truediv, a, b)


def _atom_quotient(a: Size, b: Any) -> Size:
    return Size(((((Quotient(a, b), 1),), 1),))


def _quotient_by_number(a: Size, b: int) -> Any:
    """Return floor(a / b) if no multiple of b can be factored out: cancel common factors, merge nested quotients, write
    one of few values in pieces."""
    if (pieces := pieces_of(a.terms)) is not None and pieces.turns:
        exact = pieces.floor_quotient(b, *atom_bounds(pieces.atom))
        if exact is not None:
            return _make(_sum_of_pieces(exact))
    factor = math.gcd(b, *[c for m, c in a.terms if m])
    if factor > 1:
        a, b = _make(total({m: c // factor for m, c in a.terms})), b // factor
        if b == 1:
            return a
    if is_atom(a.terms):
        atom = a.terms[0][0][0][0]
        if isinstance(atom, Quotient) and type(atom.divisor) is not Size:
            return _quotient(atom.operand, atom.divisor * b)
    return _atom_quotient(a, b)


def divided(a: Any, b: Any) -> tuple[Any, Any]:
    """Return (q, r) with a == q * b + r and all divisible terms in q. For symbolic sizes r may exceed b."""
    divisor = terms(b)
    first, factor = divisor[0]
    quotients: dict[Monomial, int] = {}
    rest = terms_of(a)
    for monomial, _ in terms(a):
        quotient, coefficient = over(monomial, first), next((c for m, c in rest if m == monomial), 0)
        multiple = coefficient // factor if type(b) is not Size or coefficient % factor == 0 else 0
        if quotient is not None and multiple:
            quotients[quotient] = quotients.get(quotient, 0) + multiple
            rest = minus(rest, product(((quotient, multiple),), divisor))
    return _make(total(quotients)), _make(rest)


def larger(a: Any, b: Any) -> Any:
    """Return the maximum of two sizes or numbers; asks nothing."""
    return positive_part(a - b) + b


def smaller(a: Any, b: Any) -> Any:
    """Return the minimum of two sizes or numbers; asks nothing."""
    return a - positive_part(a - b)


def positive_part(size: Any) -> Any:
    """Return the maximum of a size and 0; asks nothing."""
    return size.positive() if type(size) is Size else max(size, 0)


@lru_cache(maxsize=REMEMBERED)
def _positive(summed: Terms) -> Terms:
    """Return the terms of ``max(summed, 0)`` in normal form: common factors before it, first coefficient positive."""
    negative = scaled(summed, -1)
    if never_positive(negative):
        return summed
    if never_positive(summed):
        return ()
    if (pieces := pieces_of(summed)) is not None:
        return _sum_of_pieces(pieces.positive(*atom_bounds(pieces.atom)))
    shared = set.intersection(*[{atom for atom, _ in m} for m, _ in summed])
    factor = math.gcd(*[c for _, c in summed])
    for atom in shared:
        if atom_bounds(atom)[0] >= 0:
            one: Monomial = ((atom, 1),)
            return product(_positive(total({over(m, one) or (): c for m, c in summed})), ((one, 1),))
    if factor > 1:
        return scaled(_positive(tuple([(m, c // factor) for m, c in summed])), factor)
    if summed[0][1] < 0:
        return plus(summed, _positive(negative))
    return ((((Positive(_make(summed)), 1),), 1),)


def _sum_of_pieces(pieces: Pieces) -> Terms:
    """Return a piecewise linear function as a sum of positive parts."""
    variable: Monomial = ((pieces.atom, 1),)
    parts: dict[Monomial, int] = {variable: pieces.slope, (): pieces.constant}
    for point, change in pieces.turns:
        parts[((Positive(_make(total({variable: 1, (): -point}))), 1),)] = change
    return total(parts)


# ---- ranges


def bounds(size: Any) -> tuple[int, int]:
    """Return a conservative interval of a size, ends included."""
    return bounds_of(size.terms) if type(size) is Size else (int(size), int(size))


def _is_proven(a: Any, b: Any) -> bool:
    """Return whether a <= b for all sizes."""
    if type(a) is not Size and type(b) is not Size:
        return a <= b
    return never_positive(minus(terms_of(a), terms_of(b)))


def is_one(size: Any) -> bool:
    """Return whether a size is the constant 1. Code that holds for every size need not assume whether a symbolic one
    is."""
    return type(size) is int and size == 1


def always(relation: str, a: Any, b: Any) -> bool:
    """Return whether a relation (``==`` or ``<=``) holds for all sizes; assumes nothing."""
    if relation == "==":
        return a.terms == b.terms if type(a) is Size and type(b) is Size else type(a) is type(b) and a == b
    return _is_proven(a, b)


# ---- values


def at(size: Any, values: Mapping[Dimension, int] | None) -> int:
    """Return the value of a size for sizes of its dimensions; None: for the hints."""
    if type(size) is not Size:
        return size
    return expected(size.terms) if values is None else evaluated(size.terms, values)


def hint(size: Any) -> int:
    """Return the value of a size for the hints of its dimensions, for estimates."""
    return at(size, None)


# ---- questions


def _ask(relation: str, a: Any, b: Any) -> bool:
    if (resolver := asker.get()) is None and relation == "==":
        return always(relation, a, b)
    difference = b - a
    if type(difference) is not Size:
        return difference == 0 if relation == "==" else difference >= 0
    if relation == "==" and (sides := _sides_of_clamp(difference.terms)) is not None:
        return _ask("<=", *sides)
    low, high = bounds(difference)
    if low > 0 or high < 0:
        return relation == "<=" and low > 0
    if relation == "<=" and low >= 0:
        return True
    if resolver is not None:
        return resolver.ask(relation, a, b)
    raise UndecidedSize.of(relation, a, b)


def _sides_of_clamp(difference: Terms) -> tuple[Any, Any] | None:
    """Return (a, b) of ``a <= b`` where that is what a difference of 0 means, as for ``max(a - b, 0)``."""
    atoms = difference[0][0] if len(difference) == 1 else ()
    if len(atoms) != 1 or not isinstance(atoms[0][0], Positive):
        return None
    operand = terms_of(atoms[0][0].operand)
    left = tuple([(m, c) for m, c in operand if c > 0])
    return _make(left), _make(scaled(minus(operand, left), -1))


def _specialised(size: Any) -> Any:
    """Return the value of a size, which the trace assumes from now on; plain numbers are returned unchanged."""
    if type(size) is not Size:
        return size
    resolver = asker.get()
    if resolver is None:
        raise UndecidedSize(f"the size {size} is a number in calls only")
    return resolver.value(size)
