"""Sums of products of two factors that each depend on some of the axes and may be computed from anything."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from graphc.base.dtypes import DType
from graphc.base.records import dataclass
from graphc.ir.kernel.index import Axis, Div, Index, Mod, as_index, axes_of
from graphc.ir.kernel.map import Names, indices_of, map_indices, scalars_read, substitute_axes
from graphc.ir.kernel.products import PRODUCTS
from graphc.ir.kernel.statements import Acc, Const, IndexLet, Kernel, Let, Load, Loop, Read, Stmt, Store, Update, walk


@dataclass(frozen=True)
class Factor:
    """One of the two factors, with the statements that compute it."""

    statements: tuple[Stmt, ...]
    """Loads and operations in order; the last one defines the factor."""
    value: str
    """Name of the factor."""
    dtype: DType

    @property
    def axes(self) -> frozenset[Axis]:
        """Axes on which it depends."""
        return frozenset(axis for s in self.statements for index in indices_of(s) for axis in axes_of(index))

    @property
    def loads(self) -> tuple[Load, ...]:
        """Loads from which it is computed."""
        return tuple(s for s in self.statements if isinstance(s, Load))

    @property
    def is_zero_outside(self) -> bool:
        """True if it is one loaded element, perhaps converted, and hence zero where the load is zero."""
        return len(self.loads) == 1 and all(
            isinstance(s, Load) or (isinstance(s, Let) and s.op == "cast") for s in self.statements
        )


@dataclass(frozen=True)
class SumOfProducts:
    """``acc += left * right`` over ``reduced`` for every point of ``outer``, with its epilogue."""

    outer: tuple[Axis, ...]
    reduced: tuple[Axis, ...]
    left: Factor
    right: Factor
    product: Let
    acc: Acc
    after: tuple[Stmt, ...]
    """The statements outside the sum, once per point; one of them reads the sum."""

    @property
    def shared(self) -> tuple[Axis, ...]:
        """Axes on which both factors depend, or neither: batch axes of separate products."""
        left_axes, right_axes = self.left.axes, self.right.axes
        return tuple(x for x in self.outer if (x in left_axes) == (x in right_axes))

    def only(self, factor: Factor) -> tuple[Axis, ...]:
        """Return the outer axes on which only this factor depends."""
        other = self.right if factor is self.left else self.left
        return tuple(x for x in self.outer if x in factor.axes and x not in other.axes)

    @property
    def terms(self) -> int:
        """Number of products in each sum."""
        return prod(x.extent for x in self.reduced)

    @property
    def stores(self) -> tuple[Store, ...]:
        """Stores for each point."""
        return tuple(s for s in self.after if isinstance(s, Store))


def find_sum_of_products(kernel: Kernel, names: Names) -> SumOfProducts | None:
    """Match a whole kernel as a sum of products; None for other kernels.

    An axis is cut in two where a factor depends only on its quotient or its remainder by a number.
    """
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
    outside = tuple(s for s in body if s is not loops[0] and s is not accs[0])
    if not all(isinstance(s, Let | IndexLet | Load | Store | Read) for s in outside):
        return None
    inside = _innermost(loops[0])
    match = inside and _product(inside[1], outside, accs[0])
    if not inside or not match or _reads_stored_buffers(match[:2], body):
        return None
    first, second, product = match
    return _with_cut_axes(SumOfProducts(tuple(outer), inside[0], first, second, product, accs[0], outside), names)


def _innermost(loop: Loop) -> tuple[tuple[Axis, ...], tuple[Stmt, ...]] | None:
    """Return the axes of a perfect nest of reduce loops, and its innermost body; None for other loops."""
    axes: list[Axis] = []
    inner: tuple[Stmt, ...] = (loop,)
    while len(inner) == 1 and isinstance(inner[0], Loop):
        if inner[0].kind != "reduce" or inner[0].until:
            return None
        axes.append(inner[0].axis)
        inner = inner[0].body
    return tuple(axes), inner


def _product(inner: tuple[Stmt, ...], outside: tuple[Stmt, ...], acc: Acc) -> tuple[Factor, Factor, Let] | None:
    """Return the factors and their product if the innermost body is one update by the product, else None."""
    updates = [s for s in inner if isinstance(s, Update)]
    if len(updates) != 1 or updates[0].acc != acc.name:
        return None
    if not all(isinstance(s, Let | IndexLet | Load | Update) for s in inner):
        return None
    product = next((s for s in inner if isinstance(s, Let) and s.name == updates[0].value), None)
    if product is None or product.op not in PRODUCTS:
        return None
    definitions = [s for s in (*outside, *inner) if isinstance(s, Let | IndexLet | Load)]
    factors = [_factor(definitions, x) for x in product.args if isinstance(x, str)]
    if len(factors) != 2 or factors[0] is None or factors[1] is None:
        return None
    return factors[0], factors[1], product


def _factor(definitions: Sequence[Let | IndexLet | Load], name: str) -> Factor | None:
    """Return the statements from which a scalar is computed, as a factor; None where it depends on a sum."""
    by_name = {s.name: s for s in definitions}
    needed: set[str] = set()
    stack = [name]
    while stack:
        scalar = stack.pop()
        if scalar not in by_name:
            return None
        if scalar not in needed:
            needed.add(scalar)
            stack.extend(scalars_read(by_name[scalar]))
    return Factor(tuple(s for s in definitions if s.name in needed), name, by_name[name].dtype)


def _reads_stored_buffers(factors: Sequence[Factor], body: tuple[Stmt, ...]) -> bool:
    stored = {s.buffer for s, _ in walk(body) if isinstance(s, Store)}
    return any(load.buffer in stored for factor in factors for load in factor.loads)


# ---- axes of which a factor needs only the quotient or the remainder


def _with_cut_axes(match: SumOfProducts, names: Names) -> SumOfProducts:
    """Cut axes in two of which a factor needs only the quotient or the remainder by a number (as in a grouped
    convolution)."""
    for axis in match.shared:
        divisors = {d for f in (match.left, match.right) if (d := _only_divisor(f, axis)) is not None}
        if len(divisors) == 1:
            match = _cut(match, axis, divisors.pop(), names)
    return match


def _only_divisor(factor: Factor, axis: Axis) -> int | None:
    """Return the number by which an axis is divided wherever a factor depends on it; None if it varies."""
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


def _cut(match: SumOfProducts, axis: Axis, divisor: int, names: Names) -> SumOfProducts:
    upper, lower = names.axis("i", axis.extent // divisor), names.axis("i", divisor)
    position = as_index(upper) * divisor + as_index(lower)

    def change(index: Index) -> Index:
        return substitute_axes(index, {axis: position})

    def factor(old: Factor) -> Factor:
        return Factor(map_indices(old.statements, change), old.value, old.dtype)

    outer = tuple(y for x in match.outer for y in ((upper, lower) if x == axis else (x,)))
    first, second = factor(match.left), factor(match.right)
    after = map_indices(match.after, change)
    return SumOfProducts(outer, match.reduced, first, second, match.product, match.acc, after)
