"""Sums of products of two factors that each depend on a part of the axes, whatever the factors are computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from graphc.base.dtypes import DType
from graphc.codegen.schedule.contraction.match import PRODUCTS
from graphc.ir.kernel.index import Axis, Div, Index, Mod, as_index, axes_of
from graphc.ir.kernel.map import Names, indices_of, map_indices, scalars_read, substitute_axes
from graphc.ir.kernel.statements import Acc, Const, IndexLet, Kernel, Let, Load, Loop, Read, Stmt, Store, Update, walk


@dataclass(frozen=True)
class Factor:
    """One of the two numbers that are multiplied, and how it is made."""

    statements: tuple[Stmt, ...]
    """Loads and operations in order, the last of which gives the factor."""
    value: str
    """Name of the factor."""
    dtype: DType

    @property
    def axes(self) -> frozenset[Axis]:
        """The axes on which it depends."""
        return frozenset(axis for s in self.statements for index in indices_of(s) for axis in axes_of(index))

    @property
    def loads(self) -> tuple[Load, ...]:
        """What it reads."""
        return tuple(s for s in self.statements if isinstance(s, Load))

    @property
    def is_zero_outside(self) -> bool:
        """Whether it is zero where its only load is zero: it is the element as it is, or converted."""
        return len(self.loads) == 1 and all(
            isinstance(s, Load) or (isinstance(s, Let) and s.op == "cast") for s in self.statements
        )


@dataclass(frozen=True)
class SumOfProducts:
    """``acc += left * right`` over ``reduced`` for every point of ``outer``, and what is done with it."""

    outer: tuple[Axis, ...]
    reduced: tuple[Axis, ...]
    left: Factor
    right: Factor
    product: Let
    acc: Acc
    after: tuple[Stmt, ...]
    """The statements beside the sum, which run once per point; one of them reads it."""

    @property
    def shared(self) -> tuple[Axis, ...]:
        """Axes of which both factors depend, or none: those of separate products."""
        left, right = self.left.axes, self.right.axes
        return tuple(x for x in self.outer if (x in left) == (x in right))

    def only(self, factor: Factor) -> tuple[Axis, ...]:
        """The outer axes on which one factor depends alone."""
        other = self.right if factor is self.left else self.left
        return tuple(x for x in self.outer if x in factor.axes and x not in other.axes)

    @property
    def terms(self) -> int:
        """Products in each sum."""
        return prod(x.extent for x in self.reduced)

    @property
    def stores(self) -> tuple[Store, ...]:
        """What is stored for each point."""
        return tuple(s for s in self.after if isinstance(s, Store))


def find_sum_of_products(kernel: Kernel, names: Names) -> SumOfProducts | None:
    """The sum of products that makes up a whole kernel, with axes cut in two where one factor needs only their upper
    or their lower part; or None."""
    outer: list[Axis] = []
    body = kernel.body
    while len(body) == 1 and isinstance(body[0], Loop) and body[0].kind == "parallel":
        outer.append(body[0].axis)
        body = body[0].body
    loops = [s for s in body if isinstance(s, Loop)]
    accs = [s for s in body if isinstance(s, Acc)]
    if (
        not outer
        or len(loops) != 1
        or len(accs) != 1
        or accs[0].combine != "add"
        or not isinstance(accs[0].init, Const)
    ):
        return None
    beside = tuple(s for s in body if s is not loops[0] and s is not accs[0])
    if not all(isinstance(s, Let | IndexLet | Load | Store | Read) for s in beside):
        return None
    inside = _innermost(loops[0])
    found = inside and _product(inside[1], beside, accs[0])
    if not inside or not found or _reads_what_is_stored(found[:2], body):
        return None
    left, right, product = found
    whole = SumOfProducts(tuple(outer), inside[0], left, right, product, accs[0], beside)
    return _with_cut_axes(whole, names)


def _innermost(loop: Loop) -> tuple[tuple[Axis, ...], tuple[Stmt, ...]] | None:
    """The axes of a perfect nest of sums, and what is in it."""
    axes: list[Axis] = []
    inner: tuple[Stmt, ...] = (loop,)
    while len(inner) == 1 and isinstance(inner[0], Loop):
        if inner[0].kind != "reduce" or inner[0].until:
            return None
        axes.append(inner[0].axis)
        inner = inner[0].body
    return tuple(axes), inner


def _product(inner: tuple[Stmt, ...], beside: tuple[Stmt, ...], acc: Acc) -> tuple[Factor, Factor, Let] | None:
    """The factors and their product where the innermost body is one update by it."""
    updates = [s for s in inner if isinstance(s, Update)]
    if len(updates) != 1 or updates[0].acc != acc.name:
        return None
    if not all(isinstance(s, Let | IndexLet | Load | Update) for s in inner):
        return None
    product = next((s for s in inner if isinstance(s, Let) and s.name == updates[0].value), None)
    if product is None or product.op not in PRODUCTS:
        return None
    given = [s for s in (*beside, *inner) if isinstance(s, Let | IndexLet | Load)]
    factors = [_factor(given, x) for x in product.args if isinstance(x, str)]
    if len(factors) != 2 or factors[0] is None or factors[1] is None:
        return None
    return factors[0], factors[1], product


def _factor(given: Sequence[Let | IndexLet | Load], name: str) -> Factor | None:
    """What a scalar is made of; None where it needs a sum."""
    made = {s.name: s for s in given}
    needed: set[str] = set()
    stack = [name]
    while stack:
        one = stack.pop()
        if one not in made:
            return None
        if one not in needed:
            needed.add(one)
            stack.extend(scalars_read(made[one]))
    return Factor(tuple(s for s in given if s.name in needed), name, made[name].dtype)


def _reads_what_is_stored(factors: Sequence[Factor], body: tuple[Stmt, ...]) -> bool:
    stored = {s.buffer for s, _ in walk(body) if isinstance(s, Store)}
    return any(load.buffer in stored for factor in factors for load in factor.loads)


# ---- axes of which a factor needs a part


def _with_cut_axes(found: SumOfProducts, names: Names) -> SumOfProducts:
    """The same with those axes cut in two of which a factor only needs the quotient or the remainder by a number, as
    with the groups of a convolution."""
    for axis in found.shared:
        divisors = {d for f in (found.left, found.right) if (d := _part_needed(f, axis)) is not None}
        if len(divisors) == 1:
            found = _cut(found, axis, divisors.pop(), names)
    return found


def _part_needed(factor: Factor, axis: Axis) -> int | None:
    """The number by which an axis is divided wherever a factor depends on it."""
    divisors: set[int] = set()
    kinds: set[type] = set()
    stack = [index for s in factor.statements for index in indices_of(s)]
    while stack:
        for atom, _ in stack.pop().terms:
            if atom == axis:
                return None
            if isinstance(atom, Div | Mod) and axis in axes_of(atom.operand):
                if atom.operand == as_index(axis):
                    divisors.add(atom.divisor)
                    kinds.add(type(atom))
                else:
                    stack.append(atom.operand)
    divisor = divisors.pop() if len(divisors) == len(kinds) == 1 else 0
    return divisor if type(divisor) is int and divisor > 1 and _divides(divisor, axis.extent) else None


def _divides(divisor: int, extent: int) -> bool:
    return type(extent) is int and extent % divisor == 0 and extent > divisor


def _cut(found: SumOfProducts, axis: Axis, divisor: int, names: Names) -> SumOfProducts:
    upper, lower = names.axis("i", axis.extent // divisor), names.axis("i", divisor)
    place = as_index(upper) * divisor + as_index(lower)

    def change(index: Index) -> Index:
        return substitute_axes(index, {axis: place})

    def factor(old: Factor) -> Factor:
        return Factor(map_indices(old.statements, change), old.value, old.dtype)

    outer = tuple(y for x in found.outer for y in ((upper, lower) if x == axis else (x,)))
    left, right = factor(found.left), factor(found.right)
    after = map_indices(found.after, change)
    return SumOfProducts(outer, found.reduced, left, right, found.product, found.acc, after)
