"""Contractions: recognises a sum of products that makes up a whole kernel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod

from graphc.base.dtypes import DType
from graphc.base.locks import cached_property
from graphc.base.sizes.size import hint, terms
from graphc.ir.kernel.expected import expected_axis, expected_body, expected_index, holds_sizes
from graphc.ir.kernel.index import Axis, Dynamic, Index, as_index, atoms, axes_of
from graphc.ir.kernel.map import map_indices, substitute_axes
from graphc.ir.kernel.statements import Acc, IndexLet, Kernel, Let, Load, Loop, Read, Stmt, Store, Update, walk

FACTORS = ("mul", "weigh")
"""Products of two numbers."""
PRODUCTS = (*FACTORS, "dot2", "dot4")
"""Operations on two operands that are summed."""
UNPACKING = ("shl", "shr", "shr_unsigned", "and", "xor", "nibble")
"""Operations that choose some bits of a word as a factor."""


@dataclass(frozen=True)
class Contraction:
    """``acc += a * b`` summed over ``reduced`` for every point of ``outer``; ``body`` holds it and what is done
    with it."""

    outer: tuple[Axis, ...]
    reduced: tuple[Axis, ...]
    a: Load
    b: Load
    body: tuple[Stmt, ...]
    beside: tuple[Load | Store, ...]
    """Memory accesses of the body outside of the sum, once per point."""
    dtype: DType
    """What is multiplied and summed; a load of something narrower is converted first."""
    unpacked: str = ""
    """The name of the load of words whose parts are the factors of neighbouring steps, if one is."""

    def with_axis(self, axis: Axis, axes: tuple[Axis, ...], place: Index) -> Contraction:
        """The same with an outer axis replaced by others; ``place`` says where they are along it."""
        outer = tuple(y for x in self.outer for y in (axes if x == axis else (x,)))

        body = map_indices(self.body, lambda index: substitute_axes(index, {axis: place}))
        accesses = {s.name: s for s, _ in walk(body) if isinstance(s, Load)}
        beside = tuple(s for s in body if isinstance(s, (Load, Store)))
        a, b = accesses[self.a.name], accesses[self.b.name]
        return replace(self, outer=outer, a=a, b=b, body=body, beside=beside)

    def is_repeatable(self, row: Axis) -> bool:
        """Whether points along ``row`` may be computed twice: nothing is added to what is stored, or read where it is.
        Not where proofs would be hard, with rows apart by a sum of sizes or in quotients."""
        accesses = [s for s, _ in walk(self.body) if isinstance(s, Load | Store)]
        read = {s.buffer for s in accesses if isinstance(s, Load)}
        if any(s.combine is not None or s.buffer in read for s in accesses if isinstance(s, Store)):
            return False
        indices = [i for s in accesses for i in (s.index, *(bound.index for bound in s.guard))]
        return all(_is_stepped(i, row) for i in indices if row in axes_of(i))

    @property
    def work(self) -> float:
        """Multiply-adds."""
        return float(prod(hint(x.extent) for x in (*self.outer, *self.reduced)))

    @cached_property
    def expected(self) -> Contraction:
        """What it is for the sizes that are expected, for estimates; axes and loads keep their names."""
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
            beside=tuple(replace(s, index=expected_index(s.index)) for s in self.beside),
        )


def _is_stepped(index: Index, axis: Axis) -> bool:
    """Whether an axis occurs with one number or product of sizes as its factor, and nowhere else."""
    step = index.coefficient(axis)
    return len(terms(step)) == 1 and axis not in axes_of(index - as_index(axis) * step)


def find_contraction(kernel: Kernel) -> Contraction | None:
    """The contraction that makes up the whole kernel, or None."""
    outer: list[Axis] = []
    body = kernel.body
    while len(body) == 1 and isinstance(body[0], Loop) and body[0].kind == "parallel":
        outer.append(body[0].axis)
        body = body[0].body
    loops = [s for s in body if isinstance(s, Loop)]
    if not outer or len(loops) != 1 or sum(isinstance(s, Acc) for s in body) != 1:
        return None
    found = _sum_of(loops[0])
    if found is None:
        return None
    reduced, a, b, unpacked = found
    beside = tuple(s for s in body if isinstance(s, (Load, Store)))
    dtype = next(s.dtype for s in body if isinstance(s, Acc))
    return Contraction(tuple(outer), reduced, a, b, _sums_first(body), beside, dtype, unpacked)


def _sum_of(loop: Loop) -> tuple[tuple[Axis, ...], Load, Load, str] | None:
    """The axes of a sum of products, or of a sum of such sums times something each, its loads, and the unpacked one."""
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
    """The loop of a sum that is multiplied by what is read, and added to the sum around it."""
    loops, accs = [s for s in inner if isinstance(s, Loop)], [s for s in inner if isinstance(s, Acc)]
    updates = [s for s in inner if isinstance(s, Update)]
    if not len(loops) == len(accs) == len(updates) == 1 or accs[0].combine != "add":
        return None
    lets = {s.name: s for s in inner if isinstance(s, Let)}
    scaled = lets.get(str(updates[0].value))
    if scaled is None or scaled.op != "mul" or any(s.op != "cast" for s in lets.values() if s is not scaled):
        return None
    made: dict[str, str] = {}
    for s in inner:
        if isinstance(s, Read | Load):
            made[s.name] = "sum" if isinstance(s, Read) and s.acc == accs[0].name else "load"
        elif isinstance(s, Let) and s is not scaled:
            made[s.name] = made.get(str(s.args[0]), "")
    if sorted(made.get(str(a), "") for a in scaled.args) != ["load", "sum"]:
        return None
    return loops[0] if all(isinstance(s, Load | Let | Loop | Acc | Update | Read) for s in inner) else None


def _sums_first(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements with those after the sum that it does not need: a value read before would take up registers, or
    wait in memory, while the sum runs."""
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
    """The two loads, when the innermost body is nothing but ``acc += load * load``, with loads as they are, converted
    or unpacked; and the name of the unpacked one."""
    updates = [s for s in inner if isinstance(s, Update)]
    product = next((s for s in inner if isinstance(s, Let) and updates and s.name == updates[0].value), None)
    if len(updates) != 1 or product is None or product.op not in PRODUCTS:
        return None
    made = _factors(s for s in inner if s is not product and s is not updates[0])
    if made is None or (product.op in FACTORS and product.dtype.kind != "f"):
        return None
    left, right = product.args
    a, b = (made.get(x) if isinstance(x, str) else None for x in (left, right))
    if a is None or b is None or (a is b and left != right):
        return None
    if any(isinstance(x, Dynamic) for s in (a, b) for x in atoms(s.index)):
        return None
    words = {made[s.name].name for s in inner if isinstance(s, Let) and s.op in UNPACKING}
    return (a, b, next(iter(words), "")) if len(words) < 2 else None


def _factors(statements: Iterable[Stmt]) -> dict[str, Load] | None:
    """What each scalar is made of: one load; None where something else is among the statements."""
    made: dict[str, Load] = {}
    for stmt in statements:
        if isinstance(stmt, Load):
            made[stmt.name] = stmt
        elif isinstance(stmt, Let) and stmt.op in ("cast", *UNPACKING):
            sources = [made[x] for x in stmt.args if isinstance(x, str) and x in made]
            if len(sources) != 1:
                return None
            made[stmt.name] = sources[0]
        elif not isinstance(stmt, IndexLet):
            return None
    return made
