"""Index expressions of kernels: affine in loop axes, with floor division, remainder and run-time terms as atoms.

Extents, coefficients, constants, divisors and ranges are numbers, or sizes known only at run time.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, final

from graphc.base.locks import cached_property
from graphc.base.records import NamedTuple, dataclass
from graphc.base.sizes.size import Size, always
from graphc.base.sizes.size import bounds as size_bounds
from graphc.base.sizes.size_relations import as_factor, exact_quotient, quotient_and_rest, sign
from graphc.base.sizes.size_text import as_operand
from graphc.ir.types import row_major_strides


@final
class Axis(NamedTuple):
    """A loop variable that runs from 0 to ``extent`` - 1."""

    # NOTE: a tuple, since axes are compared and hashed more often than anything else.
    name: str
    extent: int
    flag: str = ""
    """For a loop around calls: name of a bool storage without dimensions; before each iteration, it tells whether to
    continue."""

    def __str__(self) -> str:
        return self.name


@final
@dataclass(frozen=True)
class Div:
    """``floor(operand / divisor)`` that could not be simplified."""

    operand: Index
    divisor: int

    def __str__(self) -> str:
        return f"({_inside(self.operand)} // {as_operand(self.divisor)})"


@final
@dataclass(frozen=True)
class Mod:
    """``operand - divisor * floor(operand / divisor)`` that could not be simplified."""

    operand: Index
    divisor: int

    def __str__(self) -> str:
        return f"({_inside(self.operand)} % {as_operand(self.divisor)})"


@final
@dataclass(frozen=True)
class Dynamic:
    """An integer scalar of the kernel used as an index, guaranteed to be in ``low..high`` (inclusive)."""

    name: str
    low: int
    high: int

    def __str__(self) -> str:
        return f"[{self.name}:{self.low}..{self.high}]"


Atom = Axis | Div | Mod | Dynamic


@final
@dataclass(frozen=True)
class Index:
    """``sum(coefficient * atom) + constant`` in canonical order; operators ``+ - *`` (by int) ``// %`` (by int > 0)."""

    terms: tuple[tuple[Atom, int], ...] = ()
    constant: int = 0

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.terms, self.constant))

    def __reduce__(self) -> Any:
        return Index, (self.terms, self.constant)  # hashes of names differ between processes

    def __add__(self, other: IndexLike) -> Index:
        other = as_index(other)
        if not other.terms:
            return Index(self.terms, self.constant + other.constant) if other.constant else self
        if not self.terms:
            return Index(other.terms, self.constant + other.constant) if self.constant else other
        merged = dict(self.terms)
        for atom, coefficient in other.terms:
            merged[atom] = merged.get(atom, 0) + coefficient
        return _make(merged, self.constant + other.constant)

    __radd__ = __add__

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: IndexLike) -> Index:
        return self + as_index(other) * -1

    def __rsub__(self, other: IndexLike) -> Index:
        return as_index(other) - self

    def __mul__(self, factor: int) -> Index:
        if factor == 0:
            return Index()
        if factor == 1:
            return self
        return Index(tuple([(a, c * factor) for a, c in self.terms]), self.constant * factor)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Index:
        if divisor == 1:
            return self
        quotient, rest = self._split(divisor)
        low, high = bounds(rest)
        if low // divisor == high // divisor:
            return quotient + low // divisor
        if not rest.constant and len(rest.terms) == 1:
            (atom, coefficient) = rest.terms[0]
            if coefficient == 1 and isinstance(atom, Div):
                return quotient + atom.operand // (atom.divisor * divisor)
            if coefficient == 1 and isinstance(atom, Mod) and (type(divisor) is Size or type(atom.divisor) is Size):
                ratio = exact_quotient(atom.divisor, divisor)
                if ratio is not None:  # Use one form: indices with sizes under guards are not enumerated.
                    return quotient + atom.operand // divisor % ratio
            factor = exact_quotient(divisor, coefficient) if _is_above_one(coefficient) else None
            if factor is not None:
                return quotient + Index(((atom, 1),)) // factor
        return quotient + Index(((Div(rest, divisor), 1),))

    def __mod__(self, divisor: int) -> Index:
        if divisor == 1:
            return Index()
        _, rest = self._split(divisor)
        low, high = bounds(rest)
        if low // divisor == high // divisor:
            return rest - (low // divisor) * divisor
        if len(rest.terms) == 1 and not rest.constant:
            (atom, coefficient) = rest.terms[0]
            if coefficient == 1 and isinstance(atom, Mod) and exact_quotient(atom.divisor, divisor) is not None:
                return atom.operand % divisor
        return Index(((Mod(rest, divisor), 1),))

    def _split(self, divisor: int) -> tuple[Index, Index]:
        """Return (q, r) with self == q * divisor + r, where no coefficient of r is a multiple of ``divisor``."""
        divisible, rest = [], []
        for atom, coefficient in self.terms:
            quotient = exact_quotient(coefficient, divisor)
            if quotient is not None:
                divisible.append((atom, quotient))
            else:
                rest.append((atom, coefficient))
        q, r = quotient_and_rest(self.constant, divisor)
        return Index(tuple(divisible), q), Index(tuple(rest), r)

    def coefficient(self, axis: Axis) -> int:
        """Return the factor of ``axis`` among the affine terms, or 0."""
        for atom, coefficient in self.terms:
            if atom is axis or atom == axis:
                return coefficient
        return 0

    @property
    def is_constant(self) -> bool:
        """Whether the index has no terms."""
        return not self.terms

    def __str__(self) -> str:
        summands = [str(a) if c == 1 else f"{as_factor(c)}*{a}" for a, c in self.terms]
        if self.constant or not summands:
            summands.append(str(self.constant))
        return " + ".join(summands).replace("+ -", "- ")


IndexLike = Index | Axis | int


def as_index(value: IndexLike) -> Index:
    """Convert an axis or an integer to an Index."""
    if type(value) is Index:
        return value
    if type(value) is Axis:
        extent = value.extent
        return Index() if type(extent) is int and extent <= 1 else Index(((value, 1),))
    return Index((), value if type(value) is Size else int(value))


def _inside(operand: Index) -> str:
    single = len(operand.terms) + bool(operand.constant) <= 1
    return str(operand) if single else f"({operand})"


def _is_above_one(coefficient: int) -> bool:
    return (coefficient if type(coefficient) is int else size_bounds(coefficient)[0]) > 1


def _make(terms: Mapping[Atom, int], constant: int) -> Index:
    nonzero = {a: c for a, c in terms.items() if c}
    for atom, coefficient in [(a, c) for a, c in nonzero.items() if isinstance(a, Mod)]:
        if nonzero.get(atom) != coefficient:
            continue
        joined = _joined(atom, coefficient, nonzero)
        if joined is not None:
            return _make(nonzero, constant) + joined * coefficient
    return Index(tuple(sorted(nonzero.items(), key=_order) if len(nonzero) > 1 else nonzero.items()), constant)


def _joined(atom: Mod, coefficient: int, terms: dict[Atom, int]) -> Index | None:
    """Remove ``atom`` and its partner from ``terms``: x%d + d*(x//d) is x, x%d + d*((x//d) % e) is x % (d*e)."""
    quotient = atom.operand // atom.divisor
    for partner, factor in terms.items():
        if factor != coefficient * atom.divisor:
            continue
        single = Index(((partner, 1),))
        if single == quotient:
            joined = atom.operand
        elif isinstance(partner, Mod) and partner.operand == quotient:
            joined = atom.operand % (atom.divisor * partner.divisor)
        else:
            continue
        del terms[atom], terms[partner]
        return joined
    return None


def _order(term: tuple[Atom, int]) -> tuple[int, str]:
    atom = term[0]
    if type(atom) is Axis:
        return 0, atom.name
    return 1 if type(atom) is Dynamic else 2, str(atom)


def bounds(index: Index) -> tuple[int, int]:
    """Return the smallest and largest value of the expression (conservative for non-affine atoms), as sizes if they
    depend on some."""
    low = high = index.constant
    for atom, coefficient in index.terms:
        a, b = (0, atom.extent - 1) if type(atom) is Axis else _atom_bounds(atom)
        if type(coefficient) is not int:
            a, b = scaled(coefficient, a, b)
            low, high = low + a, high + b
        else:
            low += coefficient * (a if coefficient > 0 else b)
            high += coefficient * (b if coefficient > 0 else a)
    return low, high


def scaled(factor: int, low: int, high: int) -> tuple[int, int]:
    """Scale the ends of a range by a factor, which may be a size of unknown sign."""
    if type(factor) is int:
        return (factor * low, factor * high) if factor > 0 else (factor * high, factor * low)
    factor_sign = sign(factor)
    if factor_sign is None:
        ends = (*size_bounds(factor * low), *size_bounds(factor * high))
        return min(ends), max(ends)
    return (factor * low, factor * high) if factor_sign > 0 else (factor * high, factor * low)


def _atom_bounds(atom: Atom) -> tuple[int, int]:
    if isinstance(atom, Axis):
        return 0, atom.extent - 1
    if isinstance(atom, Dynamic):
        return atom.low, atom.high
    low, high = bounds(atom.operand)
    if isinstance(atom, Div):
        return low // atom.divisor, high // atom.divisor
    return (
        (0, atom.divisor - 1)
        if low // atom.divisor != high // atom.divisor
        else (low % atom.divisor, high % atom.divisor)
    )


def atoms(index: Index) -> Sequence[Axis | Dynamic]:
    """Return every axis and run-time term anywhere in the expression."""
    stack, result = [index], []
    while stack:
        for atom, _ in stack.pop().terms:
            if type(atom) is Axis or type(atom) is Dynamic:
                result.append(atom)
            else:
                stack.append(atom.operand)
    return result


def sizes_of(index: Index) -> Iterator[Size]:
    """Yield the run-time sizes anywhere in the expression, including extents and ranges of its atoms."""
    stack = [index]
    while stack:
        expression = stack.pop()
        numbers: list[Any] = [expression.constant]
        for atom, coefficient in expression.terms:
            numbers.append(coefficient)
            if isinstance(atom, Axis):
                numbers.append(atom.extent)
            elif isinstance(atom, Dynamic):
                numbers += (atom.low, atom.high)
            else:
                numbers.append(atom.divisor)
                stack.append(atom.operand)
        yield from [n for n in numbers if type(n) is Size]


def axes_of(index: Index) -> set[Axis]:
    """Return the loop axes anywhere in the expression."""
    axes: set[Axis] = set()
    stack = [index]
    while stack:
        for atom, _ in stack.pop().terms:
            if type(atom) is Axis:
                axes.add(atom)
            elif type(atom) is not Dynamic:
                stack.append(atom.operand)
    return axes


def substitute(index: Index, replace: Callable[[Axis | Dynamic], IndexLike | None]) -> Index:
    """Replace axes and run-time terms; ``replace`` returns None to keep one."""
    return _with_numbers(index, replace) or _substituted(index, replace)


def _with_numbers(index: Index, replace: Callable[[Axis | Dynamic], IndexLike | None]) -> Index | None:
    """Substitute in the common case: only numbers as replacements, and no quotients or remainders. Return None
    otherwise."""
    terms: list[tuple[Atom, int]] = []
    constant = index.constant
    for term in index.terms:
        if type(term[0]) is not Axis and type(term[0]) is not Dynamic:
            return None
        new = replace(term[0])
        if new is None:
            terms.append(term)
        elif type(new) is int:
            constant += term[1] * new
        else:
            return None
    return Index(tuple(terms), constant)


def _substituted(index: Index, replace: Callable[[Axis | Dynamic], IndexLike | None]) -> Index:
    terms: list[Index] = []
    for atom, coefficient in index.terms:
        if isinstance(atom, (Axis, Dynamic)):
            new = replace(atom)
            term = Index(((atom, 1),)) if new is None else as_index(new)
        elif isinstance(atom, Div):
            term = substitute(atom.operand, replace) // atom.divisor
        else:
            term = substitute(atom.operand, replace) % atom.divisor
        terms.append(term * coefficient)
    return total(terms, index.constant)


def total(summands: Sequence[Index], constant: int = 0) -> Index:
    """Return the sum of all terms and a constant, with a single merge if no term contains remainders."""
    if any([isinstance(atom, Mod) for summand in summands for atom, _ in summand.terms]):
        # NOTE: a remainder joins with its quotient during an addition, so the order of additions matters.
        result = Index((), constant)
        for summand in summands:
            result = result + summand
        return result
    merged: dict[Atom, int] = {}
    for summand in summands:
        constant += summand.constant
        for atom, coefficient in summand.terms:
            merged[atom] = merged.get(atom, 0) + coefficient
    return _make(merged, constant)


def flatten(index: Iterable[IndexLike], strides: Iterable[int]) -> Index:
    """Return the offset, in elements, of a multi-dimensional index."""
    return total([as_index(i) * stride for i, stride in zip(index, strides, strict=True)])


def unflatten(offset: IndexLike, shape: tuple[int, ...]) -> tuple[Index, ...]:
    """Return the multi-dimensional index of a row-major offset."""
    rest = as_index(offset)
    result: list[Index] = []
    for extent in reversed(shape[1:]):
        result.append(rest % extent)
        rest = rest // extent
    if shape:
        result.append(rest)
    return tuple(reversed(result))


def reshaped(index: Sequence[IndexLike], shape: tuple[int, ...], source: tuple[int, ...]) -> tuple[Index, ...]:
    """Return the index in ``source``, a shape with as many elements, of the element at ``index`` in ``shape``.

    Dimensions whose products are equal are converted by themselves, so an index out of range of one dimension, whose
    access a guard prevents, does not change the others.
    """
    prefixes = list(itertools.accumulate(source, operator.mul, initial=1))
    result: list[Index] = []
    begin, product = 0, 1
    for end, extent in enumerate(shape, start=1):
        product = product * extent
        stop = next((j for j in range(len(result), len(prefixes)) if always("==", prefixes[j], product)), None)
        if end == len(shape):
            stop = len(source)
        if stop is not None:
            offset = flatten(index[begin:end], row_major_strides(shape[begin:end]))
            result += unflatten(offset, source[len(result) : stop])
            begin = end
    return tuple(result) if shape else unflatten(0, source)
