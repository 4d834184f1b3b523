"""Loops cut where a guard or a comparison of their index changes, so that no iteration asks: padding, concatenation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import prod

from graphc.codegen.schedule.loops.transform import drop_trivial, write_out
from graphc.ir.kernel.index import Dynamic, Index, as_index, atoms, bounds
from graphc.ir.kernel.map import BodyCopier, Names
from graphc.ir.kernel.nest import simplify
from graphc.ir.kernel.statements import (
    Acc,
    Bound,
    Const,
    Guard,
    IndexLet,
    Let,
    Load,
    Loop,
    Ref,
    Stmt,
    Store,
    Update,
    walk,
)

PIECES = 5
"""A loop that would fall into more is left as it is."""
LONG = 128
"""Iterations that a loop along neighbours in memory has at least: cutting a short one only leaves shorter vectors."""
WINDOW = 9
"""Steps of the longest sum of guarded reads that is written out."""
STATEMENTS = 400
"""Most statements that cutting may leave of one nest."""
_COMPARE = {"lt": (None, 0), "le": (None, 1), "gt": (1, None), "ge": (0, None)}
"""Range (from, to) of the left side that makes the comparison with zero true, open where it is None."""


def split_ranges(body: tuple[Stmt, ...], names: Names) -> tuple[Stmt, ...]:
    """Every parallel loop cut where conditions on its axis alone change; what is then always true or false is decided,
    and what nobody needs any more is dropped."""
    return _used(_split(tuple(_windows_out(s, names) for s in body), names, STATEMENTS), frozenset())


def _windows_out(stmt: Stmt, names: Names) -> Stmt:
    """A nest with its short sums of guarded reads written out (windows over padded images), so that their guards are
    conditions on one axis each."""
    if not isinstance(stmt, Loop):
        return stmt
    windows = [around for s, around in walk((stmt,)) if isinstance(s, Load) and s.guard and around[-1].kind == "reduce"]
    steps = [prod(x.axis.extent for x in around if x.kind == "reduce") for around in windows]
    size = sum(1 for _ in walk(stmt.body))
    if not steps or max(steps) > WINDOW or max(steps) * size > STATEMENTS // 2:
        return stmt
    body = stmt.body
    for _ in range(max(sum(x.kind == "reduce" for x in around) for around in windows)):
        body = write_out(body, names)
    return replace(stmt, body=body)


def _split(body: tuple[Stmt, ...], names: Names, room: int) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, Loop):
            result.append(stmt)
            continue
        cuts = _cuts(stmt)
        size = sum(1 for _ in walk(stmt.body))
        if stmt.kind != "parallel" or not cuts or len(cuts) >= PIECES or size * (len(cuts) + 1) > room:
            result.append(replace(stmt, body=_split(stmt.body, names, room)))
            continue
        ends = [0, *cuts, stmt.axis.extent]
        for start, end in pairwise(ends):
            axis = names.axis("s", end - start)
            copied = BodyCopier(names, {stmt.axis: as_index(axis) + start}).body(stmt.body)
            inner = _split(decide(copied), names, room // (len(cuts) + 1))
            result.append(Loop(axis, stmt.kind, inner))
    return drop_trivial(tuple(result), names)


def _cuts(loop: Loop) -> list[int]:
    """Iterations at which some condition on the axis alone changes."""
    axis, found = loop.axis, set()
    for bound in _conditions(loop.body):
        if len(bound.index.terms) == 1 and bound.index.terms[0][0] == axis:
            found.update(_solve(bound))
    along = any(abs(s.index.coefficient(axis)) == 1 for s, _ in walk(loop.body) if isinstance(s, Store))
    if along and axis.extent < LONG:
        return []
    return sorted(cut for cut in found if 0 < cut < axis.extent)


def _conditions(body: tuple[Stmt, ...]) -> Iterator[Bound]:
    """Bounds of guards, and comparisons of an index with a number as bounds."""
    indices: dict[str, Index] = {}
    for stmt, _ in walk(body):
        if isinstance(stmt, Load | Store):
            yield from stmt.guard
        elif isinstance(stmt, IndexLet):
            indices[stmt.name] = stmt.index
        elif isinstance(stmt, Let):
            bound = _comparison(stmt, indices)
            if bound is not None:
                yield bound


def _comparison(stmt: Let, indices: dict[str, Index]) -> Bound | None:
    """``index < number`` and the like as a bound."""
    if stmt.op not in _COMPARE:
        return None
    left, right = stmt.args
    if not isinstance(left, str) or left not in indices or not isinstance(right, Const) or right.dtype.kind != "i":
        return None
    index = indices[left] - int(right.value)
    low, high = bounds(index)
    first, last = _COMPARE[stmt.op]
    return Bound(index, min(low, 0) if first is None else first, max(high, 0) + 1 if last is None else last)


def _solve(bound: Bound) -> tuple[int, int]:
    """The first iteration for which the bound holds and the first after it for which it does not."""
    coefficient, constant = bound.index.terms[0][1], bound.index.constant
    first, last = bound.low - constant, bound.high - 1 - constant
    if coefficient < 0:
        coefficient, first, last = -coefficient, -last, -first
    return -(-first // coefficient), last // coefficient + 1


# ---- deciding


def decide(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements without guards that always hold, reads and writes that never happen, and known comparisons."""
    return _Decider(body).body(body)


class _Decider:
    def __init__(self, body: tuple[Stmt, ...]):
        self.known: dict[str, Ref] = {}
        """Scalars that are other scalars or numbers."""
        self.indices: dict[str, Index] = {}
        self.fixed = {a.name for i in _indices(body) for a in atoms(i) if isinstance(a, Dynamic)}
        """Scalars that are part of an index keep their statement."""

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The statements that are left."""
        return tuple(kept for s in body if (kept := self.statement(s)) is not None)

    def ref(self, ref: Ref) -> Ref:
        """An operand with what is known about it."""
        return self.known.get(ref, ref) if isinstance(ref, str) else ref

    def statement(self, s: Stmt) -> Stmt | None:
        """The statement that is left of one, or None."""
        if isinstance(s, Loop):
            return replace(s, body=self.body(s.body))
        if isinstance(s, Load):
            return self._load(s)
        if isinstance(s, Store):
            guard = simplify(s.guard)
            return None if guard is None else replace(s, value=self.ref(s.value), guard=guard)
        if isinstance(s, Let):
            return self._let(replace(s, args=tuple(map(self.ref, s.args))))
        if isinstance(s, Acc):
            return replace(s, init=self.ref(s.init))
        if isinstance(s, Update):
            return replace(s, value=self.ref(s.value))
        if isinstance(s, IndexLet):
            self.indices[s.name] = s.index
        return s

    def _load(self, s: Load) -> Stmt | None:
        guard: Guard | None = simplify(s.guard)
        if guard is None and s.other is not None and s.name not in self.fixed:
            self.known[s.name] = s.other
            return None
        return s if guard is None else replace(s, guard=guard, other=s.other if guard else None)

    def _let(self, s: Let) -> Stmt | None:
        if s.name in self.fixed:
            return s
        value = self._value(s)
        if value is None:
            return s
        self.known[s.name] = value
        return None

    def _value(self, s: Let) -> Ref | None:
        """What a statement is known to compute."""
        if s.op == "select" and isinstance(s.args[0], Const):
            return s.args[1] if s.args[0].value else s.args[2]
        bound = _comparison(s, self.indices)
        if bound is None:
            return None
        low, high = bounds(bound.index)
        if low >= bound.low and high < bound.high:
            return Const(True, s.dtype)
        return Const(False, s.dtype) if high < bound.low or low >= bound.high else None


def _indices(body: tuple[Stmt, ...]) -> Iterator[Index]:
    for s, _ in walk(body):
        if isinstance(s, Load | Store):
            yield s.index
            yield from (b.index for b in s.guard)
        elif isinstance(s, IndexLet):
            yield s.index


# ---- dropping


def _used(body: tuple[Stmt, ...], outside: frozenset[str]) -> tuple[Stmt, ...]:
    """The statements without scalars that nothing reads, and without loops that do nothing."""
    kept, _ = _sweep(body, set(outside))
    return kept


def _sweep(body: tuple[Stmt, ...], needed: set[str]) -> tuple[tuple[Stmt, ...], set[str]]:
    kept: list[Stmt] = []
    for s in reversed(body):
        if isinstance(s, Loop):
            inner, needed = _sweep(s.body, needed)
            if inner:
                kept.append(replace(s, body=inner))
            continue
        if isinstance(s, Let | IndexLet | Load) and s.name not in needed:
            continue
        kept.append(s)
        needed |= _reads(s)
    return tuple(reversed(kept)), needed


def _reads(s: Stmt) -> set[str]:
    """Scalars that a statement reads."""
    found = {a.name for i in _indices((s,)) for a in atoms(i) if isinstance(a, Dynamic)}
    if isinstance(s, Let):
        found |= {a for a in s.args if isinstance(a, str)}
    refs = [s.value] if isinstance(s, Store | Update) else [s.init] if isinstance(s, Acc) else []
    return found | {r for r in refs if isinstance(r, str)}
