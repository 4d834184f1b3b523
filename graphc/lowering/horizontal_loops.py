"""Horizontal fusion of loops: those over the same extents become one when neither needs what the other computes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from graphc.ir.kernel.index import Axis, Index
from graphc.ir.kernel.map import is_leaf, map_parts, map_statements, names_given, scalars_read, substitute_axes
from graphc.ir.kernel.statements import (
    IndexLet,
    Let,
    Load,
    Loop,
    Read,
    Ref,
    Stmt,
    Store,
    Update,
    walk,
)


def fuse_loops(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements of one scope with every reduction moved into an earlier one over the same extents where that
    changes nothing; what both read or compute is then read and computed once."""
    result = list(body)
    position = 0
    while position < len(result):
        stmt = result[position]
        if isinstance(stmt, Loop) and stmt.kind == "reduce":
            for earlier in range(position):
                merged = _merged(result, earlier, position)
                if merged is not None:
                    result = merged
                    position -= 1
                    break
        position += 1
    return tuple(result)


def _merged(body: list[Stmt], first: int, second: int) -> list[Stmt] | None:
    """The statements with the loop at ``second`` inside the one at ``first``, or None when it can not move there."""
    host, guest = body[first], body[second]
    if not isinstance(host, Loop) or not isinstance(guest, Loop):
        return None
    form = _form(host)
    if form is None or form != _form(guest):
        return None
    between = body[first + 1 : second]
    moving = _moving(host, between, guest)
    if moving is None or not _memory_allows(host, between, moving, guest):
        return None
    staying = [s for i, s in enumerate(between) if i not in moving]
    ahead = [between[i] for i in sorted(moving)]
    return [*body[:first], *ahead, _joined(host, guest), *staying, *body[second + 1 :]]


def _form(loop: Loop) -> list[tuple[str, int]] | None:
    """Kinds and extents of a perfect nest; None for any other."""
    found: list[tuple[str, int]] = []
    inner: Loop | None = loop
    while inner is not None:
        found.append((inner.kind, inner.axis.extent))
        loops = [s for s in inner.body if isinstance(s, Loop)]
        if loops and len(inner.body) > 1:
            return None
        inner = loops[0] if loops else None
    return found


def _moving(host: Loop, between: list[Stmt], guest: Loop) -> set[int] | None:
    """Which statements between the two loops have to come before the first; None when one of them can not, or when the
    second loop needs a result of the first."""
    needed = _names_read((guest,))
    moving: set[int] = set()
    for i in range(len(between) - 1, -1, -1):
        stmt = between[i]
        if isinstance(stmt, Loop):
            if needed & _names_given(stmt):
                return None
        elif needed & _names_given(stmt):
            if isinstance(stmt, Update | Store):
                return None
            moving.add(i)
            needed |= _names_read((stmt,))
    return None if needed & _names_given(host) else moving


def _memory_allows(host: Loop, between: list[Stmt], moving: set[int], guest: Loop) -> bool:
    """Whether no read and no write change places with a write of the same buffer at another element."""
    staying = [s for i, s in enumerate(between) if i not in moving]
    passed = list(_accesses((host, *staying)))
    moved = [a for i in moving for a in _accesses((between[i],))]
    same = dict(zip(_axes(guest), _axes(host), strict=True))
    own = list(_accesses((host,)))
    for access in (*_accesses((guest,)), *moved):
        for other in passed:
            if access.buffer != other.buffer or not (isinstance(access, Store) or isinstance(other, Store)):
                continue
            together = any(other is a for a in own) and not any(access is a for a in moved)
            if not together or access.guard or other.guard or substitute_axes(access.index, same) != other.index:
                return False
    return True


def _accesses(body: tuple[Stmt, ...]) -> Iterator[Load | Store]:
    return (s for s, _ in walk(body) if isinstance(s, Load | Store))


def _axes(loop: Loop) -> list[Axis]:
    return [s.axis for s, _ in walk((loop,)) if isinstance(s, Loop)]


def _names_read(body: tuple[Stmt, ...]) -> set[str]:
    """Scalars and accumulators that statements use."""
    found: set[str] = set()
    for s, _ in walk(body):
        found |= scalars_read(s)
        found |= {s.acc} if isinstance(s, Update | Read) else set()
    return found


def _names_given(stmt: Stmt) -> set[str]:
    """Scalars that a statement defines and accumulators that it declares or changes."""
    return names_given((stmt,)) | {s.acc for s, _ in walk((stmt,)) if isinstance(s, Update)}


# ---- joining


def _joined(host: Loop, guest: Loop) -> Loop:
    """One nest that does what both do in every iteration, equal statements once."""
    axes = dict(zip(_axes(guest), _axes(host), strict=True))
    joiner = _Joiner(axes)
    leaf = joiner.join(_leaf(host), _leaf(guest))
    (joined,) = map_statements((host,), enter=lambda loop: (replace(loop, body=leaf),) if is_leaf(loop) else None)
    assert isinstance(joined, Loop)
    return joined


def _leaf(loop: Loop) -> tuple[Stmt, ...]:
    inner = loop.body
    while inner and isinstance(inner[0], Loop):
        inner = inner[0].body
    return inner


class _Joiner:
    def __init__(self, axes: dict[Axis, Axis]):
        self.axes = axes
        self.known: dict[Stmt, str] = {}
        """Names of values by the statement that gives them, without its name."""
        self.renamed: dict[str, Ref] = {}
        self.result: list[Stmt] = []

    def join(self, host: tuple[Stmt, ...], guest: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The statements of both."""
        for stmt in host:
            self.add(stmt)
        for stmt in guest:
            self.add(map_parts(stmt, index=self.index, ref=self.ref))
        return tuple(self.result)

    def add(self, stmt: Stmt) -> None:
        """Appends a statement unless an equal one is there."""
        if isinstance(stmt, Let | IndexLet | Load):
            key = replace(stmt, name="")
            if key in self.known:
                self.renamed[stmt.name] = self.known[key]
                return
            self.known[key] = stmt.name
        elif isinstance(stmt, Store):
            self.forget(stmt)
        self.result.append(stmt)

    def forget(self, store: Store) -> None:
        """After a store, reads of its element give what was stored, other reads of its buffer are done again."""
        for key in [k for k in self.known if isinstance(k, Load) and k.buffer == store.buffer]:
            del self.known[key]
        if isinstance(store.value, str) and not store.guard and not store.combine:
            dtype = next((s.dtype for s in self.result if isinstance(s, Let | Load) and s.name == store.value), None)
            if dtype is not None:
                self.known[Load("", store.buffer, store.index, dtype)] = store.value

    def ref(self, ref: Ref) -> Ref:
        """An operand by the name that it has now."""
        return self.renamed.get(ref, ref) if isinstance(ref, str) else ref

    def index(self, index: Index) -> Index:
        """An index in the axes and names of the host."""
        return substitute_axes(index, self.axes, self.renamed)
