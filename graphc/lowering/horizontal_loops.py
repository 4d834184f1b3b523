"""Horizontal loop fusion: merge loops over the same extents when neither depends on the other."""

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
    """Return the statements of one scope with each reduction moved into an earlier one over the same extents.

    A reduction moves only where results stay the same. Common loads and computations are then done once.
    """
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
    """Return the statements with the loop at ``second`` fused into the one at ``first``; None if it cannot move."""
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
    """Return the kinds and extents of a perfect nest; None for other nests."""
    levels: list[tuple[str, int]] = []
    inner: Loop | None = loop
    while inner is not None:
        levels.append((inner.kind, inner.axis.extent))
        loops = [s for s in inner.body if isinstance(s, Loop)]
        if loops and len(inner.body) > 1:
            return None
        inner = loops[0] if loops else None
    return levels


def _moving(host: Loop, between: list[Stmt], guest: Loop) -> set[int] | None:
    """Return the positions of the statements between two loops which must move before the first.

    Returns None when one of them cannot move, or when the second loop depends on the first.
    """
    needed = _names_read((guest,))
    moving: set[int] = set()
    for i in range(len(between) - 1, -1, -1):
        stmt = between[i]
        if isinstance(stmt, Loop):
            if needed & _names_defined(stmt):
                return None
        elif needed & _names_defined(stmt):
            if isinstance(stmt, Update | Store):
                return None
            moving.add(i)
            needed |= _names_read((stmt,))
    return None if needed & _names_defined(host) else moving


def _memory_allows(host: Loop, between: list[Stmt], moving: set[int], guest: Loop) -> bool:
    """Check that moving reorders no access with a write to the same buffer at another element."""
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
    """Return the scalars and accumulators used by statements."""
    names: set[str] = set()
    for s, _ in walk(body):
        names |= scalars_read(s)
        names |= {s.acc} if isinstance(s, Update | Read) else set()
    return names


def _names_defined(stmt: Stmt) -> set[str]:
    """Return the scalars defined by a statement, and the accumulators declared or changed by it."""
    return names_given((stmt,)) | {s.acc for s, _ in walk((stmt,)) if isinstance(s, Update)}


# ---- joining


def _joined(host: Loop, guest: Loop) -> Loop:
    """Return one nest with the statements of both in every iteration; equal statements appear once."""
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
        self.available: dict[Stmt, str] = {}
        """Names of values, by their defining statement (with an empty name)."""
        self.renamed: dict[str, Ref] = {}
        self.result: list[Stmt] = []

    def join(self, host: tuple[Stmt, ...], guest: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return the statements of both bodies, without duplicates."""
        for stmt in host:
            self.add(stmt)
        for stmt in guest:
            self.add(map_parts(stmt, index=self.index, ref=self.ref))
        return tuple(self.result)

    def add(self, stmt: Stmt) -> None:
        """Append a statement unless an equal one precedes it."""
        if isinstance(stmt, Let | IndexLet | Load):
            key = replace(stmt, name="")
            if key in self.available:
                self.renamed[stmt.name] = self.available[key]
                return
            self.available[key] = stmt.name
        elif isinstance(stmt, Store):
            self.forget(stmt)
        self.result.append(stmt)

    def forget(self, store: Store) -> None:
        """Invalidate loads of the stored buffer; later loads of the stored element become the stored value."""
        for key in [k for k in self.available if isinstance(k, Load) and k.buffer == store.buffer]:
            del self.available[key]
        if isinstance(store.value, str) and not store.guard and not store.combine:
            dtype = next((s.dtype for s in self.result if isinstance(s, Let | Load) and s.name == store.value), None)
            if dtype is not None:
                self.available[Load("", store.buffer, store.index, dtype)] = store.value

    def ref(self, ref: Ref) -> Ref:
        """Return an operand under its name in the joined body."""
        return self.renamed.get(ref, ref) if isinstance(ref, str) else ref

    def index(self, index: Index) -> Index:
        """Return an index in the axes and names of the host."""
        return substitute_axes(index, self.axes, self.renamed)
