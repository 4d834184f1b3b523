"""Mapping of kernel statements: replace statements in bodies, and fields in statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from graphc.ir.kernel.index import Axis, Dynamic, Index, IndexLike, atoms, substitute
from graphc.ir.kernel.statements import (
    Acc,
    Bound,
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

T = TypeVar("T")

# ---- bodies


def map_statements(
    body: tuple[Stmt, ...],
    *,
    leaf: Callable[[Stmt], Sequence[Stmt]] | None = None,
    enter: Callable[[Loop], Sequence[Stmt] | None] | None = None,
    leave: Callable[[Loop], Sequence[Stmt]] | None = None,
) -> tuple[Stmt, ...]:
    """Replace each statement in order; replacements are not mapped again.

    ``leaf`` maps statements other than loops. ``enter`` maps a loop before its body (None: map the body), ``leave`` a
    loop after its body. Unchanged loops, and an unchanged ``body``, stay the same objects. The recursion depth is the
    nesting depth of loops.
    """
    result: list[Stmt] = []
    same = True
    for stmt in body:
        if type(stmt) is Loop:
            new = enter(stmt) if enter is not None else None
            if new is None:
                new = _mapped_loop(stmt, leaf, enter, leave)
        elif leaf is None:
            result.append(stmt)
            continue
        else:
            new = leaf(stmt)
        same = same and len(new) == 1 and new[0] is stmt
        result.extend(new)
    return body if same else tuple(result)


def _mapped_loop(
    loop: Loop,
    leaf: Callable[[Stmt], Sequence[Stmt]] | None,
    enter: Callable[[Loop], Sequence[Stmt] | None] | None,
    leave: Callable[[Loop], Sequence[Stmt]] | None,
) -> Sequence[Stmt]:
    inner = map_statements(loop.body, leaf=leaf, enter=enter, leave=leave)
    mapped = loop if inner is loop.body else Loop(loop.axis, loop.kind, inner, loop.until)
    return (mapped,) if leave is None else leave(mapped)


def map_indices(body: tuple[Stmt, ...], change: Callable[[Index], Index]) -> tuple[Stmt, ...]:
    """Replace every index, also in guards, by ``change(index)``; names stay."""
    return map_statements(body, leaf=lambda s: (map_parts(s, index=change),))


def rename_buffers(body: tuple[Stmt, ...], names: Mapping[str, str]) -> tuple[Stmt, ...]:
    """Rename buffers; names missing in ``names`` stay."""
    return map_statements(body, leaf=lambda s: (map_parts(s, buffer=lambda name: names.get(name, name)),))


def substitute_axes(index: Index, axes: Mapping[Axis, IndexLike], names: Mapping[str, Any] | None = None) -> Index:
    """Replace axes by indices, and rename run-time terms by ``names``. A term stays if its name maps to a literal
    instead of a name."""
    for part, _ in index.terms:
        if part in axes if type(part) is Axis else names or type(part) is not Dynamic:
            break
    else:
        return index

    def atom(a: Axis | Dynamic) -> IndexLike | None:
        if type(a) is Axis:
            return axes.get(a)
        name = names.get(a.name) if names else None
        return Index(((Dynamic(name, a.low, a.high), 1),)) if isinstance(name, str) else None

    return substitute(index, atom)


# ---- one statement


def _same(value: Any) -> Any:
    return value


def map_parts(
    stmt: Stmt,
    *,
    index: Callable[[Index], Index] = _same,
    ref: Callable[[Ref], Ref] = _same,
    acc: Callable[[str], str] = _same,
    buffer: Callable[[str], str] = _same,
    define: Callable[[str], str] = _same,
) -> Stmt:
    """Replace the fields of a statement: indices (also in guards), operands, the accumulator and the buffer it uses,
    and finally the name it defines. Return the same object if nothing changes; loops stay unchanged."""
    if type(stmt) is Let:
        args, name = _each(stmt.args, ref), define(stmt.name)
        return stmt if args is stmt.args and name is stmt.name else Let(name, stmt.op, args, stmt.dtype)
    if type(stmt) is Load or type(stmt) is Store:
        where = index(stmt.index)
        guard = _each(stmt.guard, lambda b: _with_index(b, index(b.index))) if stmt.guard else ()
        into = buffer(stmt.buffer)
        same = where is stmt.index and guard is stmt.guard and into is stmt.buffer
        if type(stmt) is Load:
            name = define(stmt.name)
            unchanged = same and name is stmt.name
            return stmt if unchanged else Load(name, into, where, stmt.dtype, guard, stmt.other)
        value = ref(stmt.value)
        return stmt if same and value is stmt.value else Store(into, where, value, guard, stmt.combine)
    if type(stmt) is IndexLet:
        where, name = index(stmt.index), define(stmt.name)
        return stmt if where is stmt.index and name is stmt.name else IndexLet(name, where, stmt.dtype)
    if type(stmt) is Prefetch:
        where, into = index(stmt.index), buffer(stmt.buffer)
        return stmt if where is stmt.index and into is stmt.buffer else Prefetch(into, where)
    if type(stmt) is Acc:
        value, name = ref(stmt.init), define(stmt.name)
        return stmt if value is stmt.init and name is stmt.name else Acc(name, stmt.dtype, stmt.combine, value)
    if type(stmt) is Update:
        value, into = ref(stmt.value), acc(stmt.acc)
        return stmt if value is stmt.value and into is stmt.acc else Update(into, value)
    if type(stmt) is Read:
        into, name = acc(stmt.acc), define(stmt.name)
        return stmt if into is stmt.acc and name is stmt.name else Read(name, into, stmt.over)
    return stmt


def _each(items: tuple[T, ...], change: Callable[[T], T]) -> tuple[T, ...]:
    """Change all items; return the same tuple if none changes."""
    changed = tuple([change(p) for p in items])
    return changed if any([a is not b for a, b in zip(changed, items, strict=True)]) else items


def _with_index(bound: Bound, index: Index) -> Bound:
    return bound if index is bound.index else Bound(index, bound.low, bound.high)


# ---- fields of statements

_GIVES = (Let, IndexLet, Load, Read, Acc)


def indices_of(stmt: Stmt) -> tuple[Index, ...]:
    """Return the index expressions of a statement (without statements inside a loop)."""
    if type(stmt) is Load or type(stmt) is Store:
        return (stmt.index, *[b.index for b in stmt.guard]) if stmt.guard else (stmt.index,)
    return (stmt.index,) if type(stmt) is IndexLet or type(stmt) is Prefetch else ()


def operands_of(stmt: Stmt) -> tuple[Ref, ...]:
    """Return the scalar and literal operands of a statement (without statements inside a loop)."""
    if type(stmt) is Let:
        return stmt.args
    if type(stmt) is Acc:
        return (stmt.init,)
    if type(stmt) is Loop:
        return (stmt.until,) if stmt.until else ()
    return (stmt.value,) if type(stmt) is Store or type(stmt) is Update else ()


def scalars_read(stmt: Stmt) -> set[str]:
    """Return the names of scalars that a statement (without statements inside a loop) reads, as operands or in an
    index."""
    names = {r for r in operands_of(stmt) if isinstance(r, str)}
    return names.union(a.name for i in indices_of(stmt) for a in atoms(i) if isinstance(a, Dynamic))


def is_leaf(loop: Loop) -> bool:
    """Check whether a loop contains no loops."""
    return not any(isinstance(s, Loop) for s in loop.body)


def chain_of(loop: Loop) -> tuple[list[Loop], tuple[Stmt, ...]]:
    """Return perfectly nested loops of one kind, outermost first, and the body of the innermost one."""
    loops = [loop]
    while len(loops[-1].body) == 1:
        (inner,) = loops[-1].body
        if not isinstance(inner, Loop) or inner.kind != loop.kind:
            break
        loops.append(inner)
    return loops, loops[-1].body


def names_given(body: Sequence[Stmt]) -> set[str]:
    """Return the scalars and accumulators that statements declare, inside loops too."""
    return {s.name for s, _ in walk(tuple(body)) if isinstance(s, _GIVES)}


# ---- copies


class Names:
    """Generator of fresh names for axes and scalars of one kernel."""

    def __init__(self, prefix: str = "", first: int = 0) -> None:
        self.next = first
        """Number of the next name."""
        self._prefix = prefix

    def _number(self) -> int:
        self.next += 1
        return self.next - 1

    def axis(self, prefix: str, extent: int) -> Axis:
        """Return a new axis."""
        return Axis(f"{prefix}{self._prefix}_{self._number()}", extent)

    def scalar(self, old: str) -> str:
        """Return a new name for a scalar or accumulator."""
        return f"{old.split('.')[0]}.{self._prefix}{self._number()}"


class BodyCopier:
    """Copier of statements that replaces axes by index expressions and renames everything."""

    def __init__(self, names: Names, axes: Mapping[Axis, IndexLike], reads: Mapping[str, Callable] | None = None):
        self.names = names
        self.axes: dict[Axis, IndexLike] = dict(axes)
        self.renamed: dict[str, str] = {}
        self.reads = reads or {}
        """By name of a load: function from (load, copier) to the (buffer, index) to read instead."""

    def index(self, index: Index) -> Index:
        """Return the index in the new axes and names."""
        return substitute_axes(index, self.axes, self.renamed)

    def name(self, ref: Any) -> Any:
        """Return the new name of an operand or an accumulator."""
        return self.renamed.get(ref, ref) if isinstance(ref, str) else ref

    def define(self, name: str) -> str:
        """Choose and return the new name of a scalar at its definition."""
        self.renamed[name] = self.names.scalar(name)
        return self.renamed[name]

    def body(self, statements: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return the copied statements."""
        return map_statements(statements, leaf=self._leaf, enter=self._loop)

    def _leaf(self, stmt: Stmt) -> Sequence[Stmt]:
        other = self.reads[stmt.name](stmt, self) if isinstance(stmt, Load) and stmt.name in self.reads else None
        copied = map_parts(stmt, index=self.index, ref=self.name, acc=self.name, define=self.define)
        return (copied if other is None else replace(copied, buffer=other[0], index=other[1]),)

    def _loop(self, loop: Loop) -> Sequence[Stmt]:
        axis = self.names.axis("i", loop.axis.extent)
        self.axes[loop.axis] = axis
        return (Loop(axis, loop.kind, self.body(loop.body), self.name(loop.until)),)
