"""Loops that the threads of a group, a warp or a block, share: what stands around them all threads do alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphc.ir.kernel.index_range import touches
from graphc.ir.kernel.map import Names, map_parts, map_statements
from graphc.ir.kernel.statements import Acc, Loop, Read, Stmt, Store, Update, walk

GROUPS = {"thread": "block", "lane": "warp"}


def share_loops(body: tuple[Stmt, ...], kind: str) -> tuple[Stmt, ...]:
    """The statements with the outermost loops that can be shared as loops of that ``kind``, and sums over the group
    where an accumulator is read that its threads have updated."""
    return _Group(kind, Names("t")).body(body)


class _Group:
    """``partial`` are the accumulators of which each thread has a part."""

    def __init__(self, kind: str, names: Names):
        self.kind = kind
        self.names = names
        self.partial: set[str] = set()

    def body(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        found: list[Stmt] = []
        for stmt in body:
            found += self.stmt(stmt)
        return tuple(found)

    def stmt(self, stmt: Stmt) -> list[Stmt]:
        if isinstance(stmt, Read) and stmt.acc in self.partial:
            return [replace(stmt, over=GROUPS[self.kind])]
        if not isinstance(stmt, Loop):
            return [stmt]
        if stmt.kind == "serial" or not _can_share(stmt):
            return [replace(stmt, body=self.body(stmt.body))]
        before, loop = self._reads_before(stmt)
        self.partial |= _updated(loop)
        return [*before, _shared(loop, self.kind)]

    def _reads_before(self, loop: Loop) -> tuple[list[Stmt], Loop]:
        """Reads of what the group has summed, before the loop in which they stand: all threads come there."""
        before: list[Stmt] = []
        renamed: dict[str, str] = {}

        def leaf(stmt: Stmt) -> Sequence[Stmt]:
            if isinstance(stmt, Read) and stmt.acc in self.partial:
                name = self.names.scalar(stmt.name)
                before.append(Read(name, stmt.acc, GROUPS[self.kind]))
                renamed[stmt.name] = name
                return ()
            return (map_parts(stmt, ref=lambda r: renamed.get(r, r) if isinstance(r, str) else r),)

        if not any(isinstance(s, Read) and s.acc in self.partial for s, _ in walk(loop.body)):
            return [], loop
        return before, replace(loop, body=map_statements(loop.body, leaf=leaf))


def _updated(loop: Loop) -> set[str]:
    """Accumulators from outside that a loop updates."""
    own = {s.name for s, _ in walk(loop.body) if isinstance(s, Acc)}
    return {s.acc for s, _ in walk(loop.body) if isinstance(s, Update)} - own


def _shared(loop: Loop, kind: str) -> Loop:
    """The loop, and those that stand alone in it, as shared ones, as far as all of them can be."""
    inner = loop.body[0] if len(loop.body) == 1 else None
    if isinstance(inner, Loop) and inner.kind in ("parallel", "reduce") and _can_share(inner):
        return replace(loop, kind=kind, body=(_shared(inner, kind),))
    return replace(loop, kind=kind)


def _can_share(loop: Loop) -> bool:
    """Whether iterations may run at once: no two of them store to the same place or add to the same element."""
    if loop.kind not in ("parallel", "reduce") or loop.until:
        return False
    stores = [s for s, _ in walk(loop.body) if isinstance(s, Store)]
    return loop.kind == "parallel" or all(touches(s.index, s.guard, loop.axis) for s in stores)
