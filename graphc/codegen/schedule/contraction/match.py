"""Contractions: recognises a sum of products that makes up a whole kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from graphc.base.dtypes import DType
from graphc.ir.kernel.index import Axis, Dynamic, Index, atoms
from graphc.ir.kernel.map import map_indices, substitute_axes
from graphc.ir.kernel.statements import Acc, IndexLet, Kernel, Let, Load, Loop, Stmt, Store, Update, walk

PRODUCTS = ("mul", "dot2", "dot4")
"""Operations on two operands that are summed."""


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

    def with_axis(self, axis: Axis, axes: tuple[Axis, ...], place: Index) -> Contraction:
        """The same with an outer axis replaced by others; ``place`` says where they are along it."""
        outer = tuple(y for x in self.outer for y in (axes if x == axis else (x,)))

        body = map_indices(self.body, lambda index: substitute_axes(index, {axis: place}))
        accesses = {s.name: s for s, _ in walk(body) if isinstance(s, Load)}
        beside = tuple(s for s in body if isinstance(s, (Load, Store)))
        a, b = accesses[self.a.name], accesses[self.b.name]
        return replace(self, outer=outer, a=a, b=b, body=body, beside=beside)

    @property
    def work(self) -> float:
        """Multiply-adds."""
        return float(prod(x.extent for x in (*self.outer, *self.reduced)))


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
    reduced: list[Axis] = []
    inner: tuple[Stmt, ...] = (loops[0],)
    while len(inner) == 1 and isinstance(inner[0], Loop) and inner[0].kind == "reduce":
        reduced.append(inner[0].axis)
        inner = inner[0].body
    pair = _product(inner)
    if pair is None:
        return None
    beside = tuple(s for s in body if isinstance(s, (Load, Store)))
    dtype = next(s.dtype for s in body if isinstance(s, Acc))
    return Contraction(tuple(outer), tuple(reduced), *pair, _sums_first(body), beside, dtype)


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


def _product(inner: tuple[Stmt, ...]) -> tuple[Load, Load] | None:
    """The two loads, when the innermost body is nothing but ``acc += load * load``, with loads converted or not."""
    loads = {s.name: s for s in inner if isinstance(s, Load)}
    updates = [s for s in inner if isinstance(s, Update)]
    casts = [s for s in inner if isinstance(s, Let) and s.op == "cast"]
    for s in casts:
        source = s.args[0]
        if isinstance(source, str) and source in loads:
            loads[s.name] = loads.pop(source)
    products = [s for s in inner if isinstance(s, Let) and s.op != "cast"]
    if len(updates) != 1 or len(products) != 1 or products[0].op not in PRODUCTS:
        return None
    if len(inner) != len(loads) + len(casts) + 2:
        return None
    a, b = (loads.get(x) if isinstance(x, str) else None for x in products[0].args)
    if a is None or b is None or updates[0].value != products[0].name:
        return None
    if products[0].op == "mul" and products[0].dtype.kind != "f":
        return None
    if any(isinstance(x, Dynamic) for s in (a, b) for x in atoms(s.index)):
        return None
    return a, b
