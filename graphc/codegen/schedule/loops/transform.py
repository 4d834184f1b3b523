"""Transformations of loop nests: copying with other axes, merging, splitting into blocks, moving invariants out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from graphc.ir.kernel.index import (
    Axis,
    Div,
    Dynamic,
    Index,
    IndexLike,
    Mod,
    as_index,
    atoms,
    axes_of,
    substitute,
)
from graphc.ir.kernel.statements import (
    Acc,
    Bound,
    Guard,
    IndexLet,
    Let,
    Load,
    Loop,
    Prefetch,
    Read,
    Ref,
    Stmt,
    Store,
    Update,
    walk,
)

_SHORT = 8
"""A last reduced axis of at most this extent is written out instead of looped over."""


class Names:
    """Fresh names for axes and scalars of one kernel."""

    def __init__(self, prefix: str = "", first: int = 0) -> None:
        self.next = first
        """Number in the next name."""
        self._prefix = prefix

    def _number(self) -> int:
        self.next += 1
        return self.next - 1

    def axis(self, prefix: str, extent: int) -> Axis:
        """A new axis."""
        return Axis(f"{prefix}{self._prefix}_{self._number()}", extent)

    def scalar(self, old: str) -> str:
        """A new name for a scalar or accumulator."""
        return f"{old.split('.')[0]}.{self._prefix}{self._number()}"


class BodyCopier:
    """Copies statements with axes replaced by index expressions and every name renewed."""

    def __init__(self, names: Names, axes: Mapping[Axis, IndexLike], reads: Mapping[str, Callable] | None = None):
        self.names = names
        self.axes: dict[Axis, IndexLike] = dict(axes)
        self.renamed: dict[str, str] = {}
        self.reads = reads or {}
        """For the name of a load: function from (load, copier) to the (buffer, index) to read instead."""

    def index(self, index: Index) -> Index:
        """The index in the new axes and names."""
        return substitute(index, self._atom)

    def _atom(self, atom: Axis | Dynamic) -> IndexLike | None:
        if isinstance(atom, Axis):
            return self.axes.get(atom)
        name = self.renamed.get(atom.name)
        return None if name is None else Index(((replace(atom, name=name), 1),))

    def guard(self, guard: Guard) -> Guard:
        """The guard in the new axes."""
        return tuple(Bound(self.index(b.index), b.low, b.high) for b in guard)

    def ref(self, ref: Ref) -> Ref:
        """An operand under its new name."""
        return self.renamed.get(ref, ref) if isinstance(ref, str) else ref

    def define(self, name: str) -> str:
        """The new name of a scalar that is defined here."""
        self.renamed[name] = self.names.scalar(name)
        return self.renamed[name]

    def body(self, statements: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The copied statements."""
        return tuple(self.statement(s) for s in statements)

    def statement(self, s: Stmt) -> Stmt:
        """One copied statement."""
        if isinstance(s, Let):
            args = tuple(self.ref(a) for a in s.args)
            return replace(s, args=args, name=self.define(s.name))
        if isinstance(s, IndexLet):
            return replace(s, index=self.index(s.index), name=self.define(s.name))
        if isinstance(s, Load):
            buffer, index = s.buffer, self.index(s.index)
            if s.name in self.reads:
                buffer, index = self.reads[s.name](s, self)
            return replace(s, buffer=buffer, index=index, guard=self.guard(s.guard), name=self.define(s.name))
        if isinstance(s, Store):
            return replace(s, index=self.index(s.index), guard=self.guard(s.guard), value=self.ref(s.value))
        if isinstance(s, Prefetch):
            return replace(s, index=self.index(s.index))
        if isinstance(s, Acc):
            return replace(s, init=self.ref(s.init), name=self.define(s.name))
        if isinstance(s, Update):
            return replace(s, acc=self.renamed.get(s.acc, s.acc), value=self.ref(s.value))
        if isinstance(s, Read):
            return replace(s, acc=self.renamed.get(s.acc, s.acc), name=self.define(s.name))
        axis = self.names.axis("i", s.axis.extent)
        self.axes[s.axis] = axis
        return Loop(axis, s.kind, self.body(s.body))


def indices_of(statement: Stmt) -> tuple[Index, ...]:
    """Index expressions of a statement (not of statements inside a loop)."""
    if isinstance(statement, (Load, Store)):
        return (statement.index, *(b.index for b in statement.guard))
    return (statement.index,) if isinstance(statement, IndexLet) else ()


# ---- merging


def drop_trivial(body: tuple[Stmt, ...], names: Names) -> tuple[Stmt, ...]:
    """Loops of one iteration become their body, loops of none go."""
    kept: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, Loop):
            kept.append(stmt)
        elif stmt.axis.extent > 1:
            kept.append(Loop(stmt.axis, stmt.kind, drop_trivial(stmt.body, names)))
        elif stmt.axis.extent == 1:
            kept += drop_trivial(BodyCopier(names, {stmt.axis: 0}).body(stmt.body), names)
    return tuple(kept)


def merge_loops(body: tuple[Stmt, ...], names: Names) -> tuple[Stmt, ...]:
    """Adjacent nested loops of one kind become one wherever every index treats them as one."""
    merged: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, Loop):
            merged.append(stmt)
            continue
        loop = Loop(stmt.axis, stmt.kind, merge_loops(stmt.body, names))
        inner = loop.body[0] if len(loop.body) == 1 else None
        if isinstance(inner, Loop) and inner.kind == loop.kind and _mergeable(loop.axis, inner):
            loop = _merged(loop.axis, inner, names)
        merged.append(loop)
    return tuple(merged)


def _mergeable(outer: Axis, inner: Loop) -> bool:
    for stmt, _ in walk(inner.body):
        pending = list(indices_of(stmt))
        while pending:
            index = pending.pop()
            if index.coefficient(outer) != index.coefficient(inner.axis) * inner.axis.extent:
                return False
            pending += [atom.operand for atom, _ in index.terms if isinstance(atom, (Div, Mod))]
        if isinstance(stmt, (Load, Store)) and any(axes_of(b.index) & {outer, inner.axis} for b in stmt.guard):
            return False
    return True


def _merged(outer: Axis, inner: Loop, names: Names) -> Loop:
    axis = names.axis("m", outer.extent * inner.axis.extent)
    copier = BodyCopier(names, {outer: 0, inner.axis: axis})
    return Loop(axis, inner.kind, copier.body(inner.body))


# ---- splitting and ordering


def split_loops(body: tuple[Stmt, ...], names: Names) -> tuple[Stmt, ...]:
    """A loop whose axis some index divides by a constant becomes two, so that quotient and remainder are axes."""
    result: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, Loop):
            result.append(stmt)
            continue
        divisor = _divisor(stmt)
        if divisor:
            outer, inner = names.axis("d", stmt.axis.extent // divisor), names.axis("d", divisor)
            index = block_index(0, (outer, divisor), (inner, 1))
            copied = BodyCopier(names, {stmt.axis: index}).body(stmt.body)
            split = Loop(outer, stmt.kind, (Loop(inner, stmt.kind, copied),))
            result += split_loops((split,), names)
        else:
            result.append(Loop(stmt.axis, stmt.kind, split_loops(stmt.body, names)))
    return tuple(result)


def has_divisor(body: tuple[Stmt, ...]) -> bool:
    """Whether ``split_loops`` would find something to split (merged loops may have it)."""
    return any(isinstance(stmt, Loop) and _divisor(stmt) for stmt, _ in walk(body))


def _divisor(loop: Loop) -> int:
    """The smallest divisor under which the axis occurs alone and which divides its extent; 0 when there is none."""
    found: set[int] = set()
    for stmt, _ in walk(loop.body):
        for index in indices_of(stmt):
            for atom, _ in index.terms:
                if isinstance(atom, (Div, Mod)) and atom.operand == as_index(loop.axis):
                    found.add(atom.divisor)
    usable = [d for d in found if loop.axis.extent % d == 0 and 1 < d < loop.axis.extent]
    return min(usable, default=0)


def sort_loops(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Perfectly nested parallel or reduce loops ordered by the memory that they walk over, smallest steps innermost."""
    result: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, Loop):
            result.append(stmt)
            continue
        axes, inner = [stmt.axis], stmt.body
        while stmt.kind in ("parallel", "reduce") and len(inner) == 1:
            nested = inner[0]
            if not isinstance(nested, Loop) or nested.kind != stmt.kind:
                break
            axes.append(nested.axis)
            inner = nested.body
        if len(axes) > 1:
            steps = {a: _step(a, inner) for a in axes}
            axes.sort(key=lambda a: -steps[a])
        result += wrap([(a, stmt.kind) for a in axes], sort_loops(inner))
    return tuple(result)


def _step(axis: Axis, body: tuple[Stmt, ...]) -> int:
    """Elements between neighbouring iterations: of what is written, else the largest among what is read."""
    stores = [abs(s.index.coefficient(axis)) for s, _ in walk(body) if isinstance(s, Store)]
    loads = [abs(s.index.coefficient(axis)) for s, _ in walk(body) if isinstance(s, Load)]
    return max(stores, default=0) or max(loads, default=0)


# ---- invariants


def hoist(body: tuple[Stmt, ...], stored: set[str]) -> tuple[Stmt, ...]:
    """Moves scalar work and reads of read-only buffers out of loops on which they do not depend. ``stored`` are the
    buffers that the kernel writes."""
    result: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, Loop):
            result.append(stmt)
            continue
        inner = hoist(stmt.body, stored)
        varying: set[str] = set()
        kept: list[Stmt] = []
        for s in inner:
            if depends(s, stmt.axis, varying, stored):
                varying.update(defined(s))
                kept.append(s)
            else:
                result.append(s)
        result.append(Loop(stmt.axis, stmt.kind, tuple(kept)))
    return tuple(result)


def depends(s: Stmt, axis: Axis, varying: set[str], stored: set[str]) -> bool:
    """Whether a statement differs between iterations of a loop over ``axis`` in which ``varying`` scalars differ."""
    if isinstance(s, Let):
        return any(isinstance(a, str) and a in varying for a in s.args)
    if isinstance(s, (IndexLet, Load)):
        if isinstance(s, Load) and (s.buffer in stored or s.guard):
            return True
        return any(a == axis or (isinstance(a, Dynamic) and a.name in varying) for i in indices_of(s) for a in atoms(i))
    return True


def defined(s: Stmt) -> set[str]:
    """Names that a statement gives, those inside a loop included."""
    if isinstance(s, Loop):
        return {name for inner in s.body for name in defined(inner)}
    return {s.name} if isinstance(s, (Let, IndexLet, Load, Read, Acc)) else set()


# ---- blocks


def write_out(body: tuple[Stmt, ...], names: Names) -> tuple[Stmt, ...]:
    """Short innermost reduce loops written out, so that a window of 3 or 5 costs no loop."""
    result: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, Loop):
            result.append(stmt)
            continue
        leaf = not any(isinstance(s, Loop) for s in stmt.body)
        if leaf and stmt.kind == "reduce" and stmt.axis.extent <= _SHORT:
            for i in range(stmt.axis.extent):
                result += BodyCopier(names, {stmt.axis: i}).body(stmt.body)
        else:
            result.append(Loop(stmt.axis, stmt.kind, write_out(stmt.body, names)))
    return tuple(result)


def map_indices(body: tuple[Stmt, ...], change: Callable[[Index], Index]) -> tuple[Stmt, ...]:
    """The statements with every index, those of guards too, replaced by what ``change`` makes of it; names stay."""
    result: list[Stmt] = []
    for s in body:
        if isinstance(s, Loop):
            result.append(replace(s, body=map_indices(s.body, change)))
        elif isinstance(s, Load | Store):
            guard = tuple(replace(b, index=change(b.index)) for b in s.guard)
            result.append(replace(s, index=change(s.index), guard=guard))
        elif isinstance(s, IndexLet | Prefetch):
            result.append(replace(s, index=change(s.index)))
        else:
            result.append(s)
    return tuple(result)


def blocks(extent: int, largest: int) -> list[tuple[int, int, int]]:
    """(start, count, size) of equal-sized runs that cover ``extent`` with blocks of at most ``largest``: 49 by 14 is
    one block of 13 and three of 12."""
    if extent <= 0:
        return []
    number = -(-extent // largest)
    small, larger = divmod(extent, number)
    runs = []
    if larger:
        runs.append((0, larger, small + 1))
    if number - larger:
        runs.append((larger * (small + 1), number - larger, small))
    return runs


def wrap(axes: list[tuple[Axis, str]], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """``body`` inside loops over ``axes`` ((axis, kind), outermost first). Loops of one iteration are left out, but a
    vector loop of one lane stays: what it adds to an accumulator with lanes belongs to one lane only."""
    for axis, kind in reversed(axes):
        if axis.extent != 1 or kind == "vector":
            body = (Loop(axis, kind, body),)
    return body


def block_index(start: int, *parts: tuple[Axis, int]) -> Index:
    """``start`` plus a sum of axis times step."""
    index = as_index(start)
    for axis, step in parts:
        index = index + as_index(axis) * step
    return index
