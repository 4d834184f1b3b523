"""Index-set splitting: cut loops where a guard or a comparison of their index changes (padding, concatenation)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from math import prod

from graphc.base.sizes.size import always, hint, is_size
from graphc.base.sizes.size import bounds as size_bounds
from graphc.codegen.machine.costs import LoopCosts
from graphc.codegen.schedule.loops.transform import drop_trivial, write_out
from graphc.ir.kernel.index import Dynamic, Index, as_index, atoms, bounds
from graphc.ir.kernel.map import BodyCopier, Names, indices_of, map_parts, map_statements, scalars_read
from graphc.ir.kernel.nest import simplify
from graphc.ir.kernel.statements import (
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
    walk,
)

_COMPARE = {"lt": (None, 0), "le": (None, 1), "gt": (1, None), "ge": (0, None)}
"""Range (from, to) of the left side in which its comparison with zero is true; None is an open end."""


def split_index_sets(body: tuple[Stmt, ...], names: Names, k: LoopCosts) -> tuple[Stmt, ...]:
    """Cut every loop, except long reductions, where conditions on its axis alone change.

    A reduction of a few steps runs over joined operands, which other axes read in order once it is cut.

    Conditions that become always true or false are folded, and statements that nothing needs are dropped.
    """
    return _used(_split(tuple(_windows_out(s, names, k) for s in body), names, k, k.statements))


def _windows_out(stmt: Stmt, names: Names, k: LoopCosts) -> Stmt:
    """Unroll the short sums of guarded loads in a nest (windows over padded images), so that each guard is a condition
    on one axis."""
    if not isinstance(stmt, Loop):
        return stmt
    windows = [
        enclosing
        for s, enclosing in walk((stmt,))
        if isinstance(s, Load) and s.guard and enclosing[-1].kind == "reduce"
    ]
    steps = [prod(x.axis.extent for x in enclosing if x.kind == "reduce") for enclosing in windows]
    size = sum(1 for _ in walk(stmt.body))
    if not steps or any(map(is_size, steps)) or max(steps) > k.window or max(steps) * size > k.statements // 2:
        return stmt
    body = stmt.body
    for _ in range(max(sum(x.kind == "reduce" for x in enclosing) for enclosing in windows)):
        body = write_out(body, names, k)
    return replace(stmt, body=body)


def _split(body: tuple[Stmt, ...], names: Names, k: LoopCosts, room: int) -> tuple[Stmt, ...]:
    def enter(loop: Loop) -> tuple[Stmt, ...] | None:
        cuts = _cuts(loop, k)
        size = sum(1 for _ in walk(loop.body))
        long = len(cuts) >= k.pieces or size * (len(cuts) + 1) > room
        few = not is_size(loop.axis.extent) and loop.axis.extent <= k.pieces
        if loop.kind not in ("parallel", "serial", *(("reduce",) if few else ())) or not cuts or long or loop.until:
            return None
        pieces: list[Stmt] = []
        for start, end in pairwise([0, *cuts, loop.axis.extent]):
            axis = names.axis("s", end - start)
            copied = BodyCopier(names, {loop.axis: as_index(axis) + start}).body(loop.body)
            inner = _split(decide(copied), names, k, room // (len(cuts) + 1))
            pieces.append(Loop(axis, loop.kind, inner))
        return tuple(pieces)

    return drop_trivial(map_statements(body, enter=enter), names)


def _cuts(loop: Loop, k: LoopCosts) -> list[int]:
    """Return the iterations at which a condition on the axis alone changes."""
    axis, cuts = loop.axis, set[int]()
    for bound in _conditions(loop.body):
        if len(bound.index.terms) == 1 and bound.index.terms[0][0] == axis:
            cuts.update(_solve(bound))
    along = any(abs(s.index.coefficient(axis)) == 1 for s, _ in walk(loop.body) if isinstance(s, Store))
    if along and hint(axis.extent) < k.lane_extent:
        return []
    return _in_order(cuts, axis.extent)


def _in_order(cuts: set[int], extent: int) -> list[int]:
    """Return the cuts inside an extent for all sizes, in an order valid in every call.

    If the order of two cuts depends on the call, the one expected to come last is left out.
    """
    ordered: list[int] = []
    for cut in sorted(cuts, key=lambda c: (hint(c), str(c))):
        ends = [*ordered[-1:], 0][0], extent
        if always("<=", ends[0], cut) and always("<=", cut, extent) and not any(always("==", cut, e) for e in ends):
            ordered.append(cut)
    return ordered


def _conditions(body: tuple[Stmt, ...]) -> Iterator[Bound]:
    """Yield the bounds of guards, and comparisons of an index with a number as bounds."""
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
    """Return ``index < number`` and the like as a bound; None for other comparisons."""
    if stmt.op not in _COMPARE:
        return None
    compared, right = stmt.args
    value = _integer_value(right, indices)
    if not isinstance(compared, str) or compared not in indices or value is None:
        return None
    index = indices[compared] - value
    low, high = (size_bounds(end)[i] for i, end in enumerate(bounds(index)))
    first, last = _COMPARE[stmt.op]
    return Bound(index, min(low, 0) if first is None else first, max(high, 0) + 1 if last is None else last)


def _integer_value(ref: Ref, indices: Mapping[str, Index]) -> int | None:
    """Return the loop-invariant integer value of an operand: a literal, or a size known at run time; else None."""
    if isinstance(ref, Const):
        return int(ref.value) if ref.dtype.kind == "i" else None
    index = indices.get(ref)
    return index.constant if index is not None and index.is_constant else None


def _solve(bound: Bound) -> tuple[int, ...]:
    """Return the first iteration for which the bound holds, and the first after it for which it does not.

    Returns nothing where the sign of the index's step depends on the sizes of a call.
    """
    coefficient, constant = bound.index.terms[0][1], bound.index.constant
    first, last = bound.low - constant, bound.high - 1 - constant
    if always("<=", coefficient, -1):
        coefficient, first, last = -coefficient, -last, -first
    if not always("<=", 1, coefficient):
        return ()
    return -(-first // coefficient), last // coefficient + 1


# ---- folding


def decide(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Fold guards that always hold, accesses that never happen, and comparisons with a known result."""
    return map_statements(body, leaf=_Folder(body).leaf)


class _Folder:
    def __init__(self, body: tuple[Stmt, ...]):
        self.values: dict[str, Ref] = {}
        """Scalars folded to other scalars or to numbers."""
        self.indices: dict[str, Index] = {}
        self.fixed = {a.name for s, _ in walk(body) for i in indices_of(s) for a in atoms(i) if isinstance(a, Dynamic)}
        """Scalars that occur in an index; they keep their statement."""

    def ref(self, ref: Ref) -> Ref:
        """Return the folded value of an operand, or the operand itself."""
        return self.values.get(ref, ref) if isinstance(ref, str) else ref

    def leaf(self, stmt: Stmt) -> tuple[Stmt, ...]:
        """Return the simplified statement, or nothing if it was folded."""
        simplified = self._simplified(map_parts(stmt, ref=self.ref))
        return () if simplified is None else (simplified,)

    def _simplified(self, s: Stmt) -> Stmt | None:
        if isinstance(s, Load):
            return self._load(s)
        if isinstance(s, Store):
            guard = simplify(s.guard)
            return None if guard is None else replace(s, guard=guard)
        if isinstance(s, Let):
            return self._let(s)
        if isinstance(s, IndexLet):
            self.indices[s.name] = s.index
        return s

    def _load(self, s: Load) -> Stmt | None:
        guard: Guard | None = simplify(s.guard)
        if guard is None and s.other is not None and s.name not in self.fixed:
            self.values[s.name] = s.other
            return None
        return s if guard is None else replace(s, guard=guard, other=s.other if guard else None)

    def _let(self, s: Let) -> Stmt | None:
        if s.name in self.fixed:
            return s
        value = self._value(s)
        if value is None:
            return s
        self.values[s.name] = value
        return None

    def _value(self, s: Let) -> Ref | None:
        """Return the constant value of a statement, or None."""
        if s.op == "select" and isinstance(s.args[0], Const):
            return s.args[1] if s.args[0].value else s.args[2]
        bound = _comparison(s, self.indices)
        if bound is None:
            return None
        low, high = bounds(bound.index)
        if always("<=", bound.low, low) and always("<=", high + 1, bound.high):
            return Const(True, s.dtype)
        never = always("<=", high + 1, bound.low) or always("<=", bound.high, low)
        return Const(False, s.dtype) if never else None


# ---- dropping


def _used(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the statements without unread scalars and without empty loops."""
    needed: set[str] = set()
    for s, _ in reversed(list(walk(body))):
        if not isinstance(s, Let | IndexLet | Load) or s.name in needed:
            needed |= scalars_read(s)

    def leaf(s: Stmt) -> tuple[Stmt, ...]:
        return () if isinstance(s, Let | IndexLet | Load) and s.name not in needed else (s,)

    return map_statements(body, leaf=leaf, leave=lambda loop: (loop,) if loop.body else ())
