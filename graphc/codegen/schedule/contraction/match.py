"""Contractions: match a kernel that consists of one sum of products."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod

from graphc.base.dtypes import DType
from graphc.base.locks import cached_property
from graphc.base.records import dataclass
from graphc.base.sizes.size import hint, terms
from graphc.ir.kernel.expected import expected_axis, expected_body, expected_index, holds_sizes
from graphc.ir.kernel.index import Axis, Dynamic, Index, as_index, atoms, axes_of
from graphc.ir.kernel.map import map_indices, substitute_axes
from graphc.ir.kernel.products import FACTORS, PRODUCTS
from graphc.ir.kernel.statements import Acc, IndexLet, Kernel, Let, Load, Loop, Read, Stmt, Store, Update, walk

UNPACKING = ("shl", "shr", "shr_unsigned", "and", "xor", "nibble")
"""Operations that extract a factor from the bits of a word."""


@dataclass(frozen=True)
class Contraction:
    """``acc += a * b`` over ``reduced`` for every point of ``outer``; ``body`` is the sum with its epilogue."""

    outer: tuple[Axis, ...]
    reduced: tuple[Axis, ...]
    a: Load
    b: Load
    body: tuple[Stmt, ...]
    outer_accesses: tuple[Load | Store, ...]
    """Memory accesses of the body outside the sum, once per point."""
    dtype: DType
    """Type of the factors and the sum; loads of narrower types are converted first."""
    unpacked: str = ""
    """Name of the load of words that hold the factors of several steps (such as int4), or empty."""

    def with_axis(self, axis: Axis, axes: tuple[Axis, ...], position: Index) -> Contraction:
        """Return the contraction with an outer axis replaced by ``axes``; ``position`` is the index along the old
        axis."""
        outer = tuple(y for x in self.outer for y in (axes if x == axis else (x,)))

        body = map_indices(self.body, lambda index: substitute_axes(index, {axis: position}))
        accesses = {s.name: s for s, _ in walk(body) if isinstance(s, Load)}
        outer_accesses = tuple(s for s in body if isinstance(s, (Load, Store)))
        a, b = accesses[self.a.name], accesses[self.b.name]
        return replace(self, outer=outer, a=a, b=b, body=body, outer_accesses=outer_accesses)

    def is_repeatable(self, row: Axis) -> bool:
        """Check whether points along ``row`` may be computed twice: no store combines or writes a loaded buffer.

        False also where proofs would be hard: if the stride of rows is a sum of sizes, or rows occur in quotients.
        """
        accesses = [s for s, _ in walk(self.body) if isinstance(s, Load | Store)]
        read = {s.buffer for s in accesses if isinstance(s, Load)}
        if any(s.combine is not None or s.buffer in read for s in accesses if isinstance(s, Store)):
            return False
        indices = [i for s in accesses for i in (s.index, *(bound.index for bound in s.guard))]
        return all(_is_stepped(i, row) for i in indices if row in axes_of(i))

    @property
    def work(self) -> float:
        """Number of multiply-adds."""
        return float(prod(hint(x.extent) for x in (*self.outer, *self.reduced)))

    @cached_property
    def expected(self) -> Contraction:
        """The contraction with expected sizes, for estimates; axes and loads keep their names."""
        axes = (*self.outer, *self.reduced)
        if not holds_sizes(self.body) and all(x is expected_axis(x) for x in axes):
            return self
        a, b = (replace(load, index=expected_index(load.index)) for load in (self.a, self.b))
        return replace(
            self,
            outer=tuple(map(expected_axis, self.outer)),
            reduced=tuple(map(expected_axis, self.reduced)),
            a=a,
            b=b,
            body=expected_body(self.body),
            outer_accesses=tuple(replace(s, index=expected_index(s.index)) for s in self.outer_accesses),
        )


def _is_stepped(index: Index, axis: Axis) -> bool:
    """Check whether an axis occurs only once, with a number or a product of sizes as its factor."""
    step = index.coefficient(axis)
    return len(terms(step)) == 1 and axis not in axes_of(index - as_index(axis) * step)


def find_contraction(kernel: Kernel) -> Contraction | None:
    """Match the whole kernel as a contraction; None for other kernels."""
    outer: list[Axis] = []
    body = kernel.body
    while len(body) == 1 and isinstance(body[0], Loop) and body[0].kind == "parallel":
        outer.append(body[0].axis)
        body = body[0].body
    loops = [s for s in body if isinstance(s, Loop)]
    if not outer or len(loops) != 1 or sum(isinstance(s, Acc) for s in body) != 1:
        return None
    match = _sum_of(loops[0])
    if match is None:
        return None
    reduced, a, b, unpacked = match
    outer_accesses = tuple(s for s in body if isinstance(s, (Load, Store)))
    dtype = next(s.dtype for s in body if isinstance(s, Acc))
    return Contraction(tuple(outer), reduced, a, b, _sums_first(body), outer_accesses, dtype, unpacked)


def _sum_of(loop: Loop) -> tuple[tuple[Axis, ...], Load, Load, str] | None:
    """Match a sum of products, or a sum of scaled sums of products.

    Returns its axes, its two loads and the name of the unpacked load; None for other loops.
    """
    reduced: list[Axis] = []
    inner: tuple[Stmt, ...] = (loop,)
    while True:
        while len(inner) == 1 and isinstance(inner[0], Loop) and inner[0].kind == "reduce":
            reduced.append(inner[0].axis)
            inner = inner[0].body
        pair = _product(inner)
        if pair is not None:
            return tuple(reduced), *pair
        nested = _scaled_sum(inner)
        if nested is None:
            return None
        inner = (nested,)


def _scaled_sum(inner: tuple[Stmt, ...]) -> Loop | None:
    """Return the loop of an inner sum whose result is multiplied by a load and added to the outer sum, or None."""
    loops, accs = [s for s in inner if isinstance(s, Loop)], [s for s in inner if isinstance(s, Acc)]
    updates = [s for s in inner if isinstance(s, Update)]
    if not len(loops) == len(accs) == len(updates) == 1 or accs[0].combine != "add":
        return None
    lets = {s.name: s for s in inner if isinstance(s, Let)}
    scaled = lets.get(str(updates[0].value))
    if scaled is None or scaled.op != "mul" or any(s.op != "cast" for s in lets.values() if s is not scaled):
        return None
    origin: dict[str, str] = {}
    for s in inner:
        if isinstance(s, Read | Load):
            origin[s.name] = "sum" if isinstance(s, Read) and s.acc == accs[0].name else "load"
        elif isinstance(s, Let) and s is not scaled:
            origin[s.name] = origin.get(str(s.args[0]), "")
    if sorted(origin.get(str(a), "") for a in scaled.args) != ["load", "sum"]:
        return None
    return loops[0] if all(isinstance(s, Load | Let | Loop | Acc | Update | Read) for s in inner) else None


def _sums_first(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Move statements after the sum unless it needs them: values read earlier would occupy registers, or be spilled,
    while the sum runs."""
    needed = {s.init for s in body if isinstance(s, Acc)}
    first: list[Stmt] = []
    later: list[Stmt] = []
    for stmt in reversed(body[: next(i for i, s in enumerate(body) if isinstance(s, Loop))]):
        if isinstance(stmt, Acc) or (isinstance(stmt, Let | Load | IndexLet) and stmt.name in needed):
            needed.update(stmt.args if isinstance(stmt, Let) else ())
            first.insert(0, stmt)
        else:
            later.insert(0, stmt)
    return (*first, body[len(first) + len(later)], *later, *body[len(first) + len(later) + 1 :])


def _product(inner: tuple[Stmt, ...]) -> tuple[Load, Load, str] | None:
    """Match ``acc += load * load`` as the whole innermost body, with plain, converted or unpacked loads.

    Returns the two loads and the name of the unpacked one; None for other bodies.
    """
    updates = [s for s in inner if isinstance(s, Update)]
    product = next((s for s in inner if isinstance(s, Let) and updates and s.name == updates[0].value), None)
    if len(updates) != 1 or product is None or product.op not in PRODUCTS:
        return None
    source = _factors(s for s in inner if s is not product and s is not updates[0])
    if source is None or (product.op in FACTORS and product.dtype.kind != "f"):
        return None
    first, second = product.args
    a, b = (source.get(x) if isinstance(x, str) else None for x in (first, second))
    if a is None or b is None or (a is b and first != second):
        return None
    if any(isinstance(x, Dynamic) for s in (a, b) for x in atoms(s.index)):
        return None
    words = {source[s.name].name for s in inner if isinstance(s, Let) and s.op in UNPACKING}
    return (a, b, next(iter(words), "")) if len(words) < 2 else None


def _factors(statements: Iterable[Stmt]) -> dict[str, Load] | None:
    """Return, for each scalar, the one load from which it is computed; None if there are other statements."""
    source: dict[str, Load] = {}
    for stmt in statements:
        if isinstance(stmt, Load):
            source[stmt.name] = stmt
        elif isinstance(stmt, Let) and stmt.op in ("cast", *UNPACKING):
            loads = [source[x] for x in stmt.args if isinstance(x, str) and x in source]
            if len(loads) != 1:
                return None
            source[stmt.name] = loads[0]
        elif not isinstance(stmt, IndexLet):
            return None
    return source
