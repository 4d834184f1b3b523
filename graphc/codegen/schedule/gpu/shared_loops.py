"""Loops shared by the threads of a warp or a block; all threads run the statements around them alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphc.ir.kernel.index_range import touches
from graphc.ir.kernel.map import Names, map_parts, map_statements
from graphc.ir.kernel.statements import Acc, Loop, Read, Stmt, Store, Update, walk

GROUPS = {"thread": "block", "lane": "warp"}


def share_loops(body: tuple[Stmt, ...], kind: str) -> tuple[Stmt, ...]:
    """Turn the outermost loops that can be shared into loops of that ``kind``.

    Reads of an accumulator become sums over the group if its threads have updated the accumulator.
    """
    return _Group(kind, Names("t")).body(body)


class _Group:
    """Rewriter for one kind of group; each thread has only a partial sum in the accumulators ``partial``."""

    def __init__(self, kind: str, names: Names):
        self.kind = kind
        self.names = names
        self.partial: set[str] = set()

    def body(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        statements: list[Stmt] = []
        for stmt in body:
            statements += self.stmt(stmt)
        return tuple(statements)

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
        """Move reads of partial sums out of a shared loop, to a point that every thread reaches."""
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
    """Return the accumulators updated by a loop and declared outside it."""
    own = {s.name for s, _ in walk(loop.body) if isinstance(s, Acc)}
    return {s.acc for s, _ in walk(loop.body) if isinstance(s, Update)} - own


def _shared(loop: Loop, kind: str) -> Loop:
    """Make a loop, and loops perfectly nested in it, shared as far as possible."""
    inner = loop.body[0] if len(loop.body) == 1 else None
    if isinstance(inner, Loop) and inner.kind in ("parallel", "reduce") and _can_share(inner):
        return replace(loop, kind=kind, body=(_shared(inner, kind),))
    return replace(loop, kind=kind)


def _can_share(loop: Loop) -> bool:
    """Check whether iterations may run concurrently: no two of them store to the same element."""
    if loop.kind not in ("parallel", "reduce") or loop.until:
        return False
    stores = [s for s, _ in walk(loop.body) if isinstance(s, Store)]
    return loop.kind == "parallel" or all(touches(s.index, s.guard, loop.axis) for s in stores)
