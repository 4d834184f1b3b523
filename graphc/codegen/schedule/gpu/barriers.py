"""Barriers: where threads of a group read what others have written, or write over what others read."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from graphc.ir.kernel.statements import Barrier, Load, Loop, Read, Stmt, Store, walk


def put_barriers(body: tuple[Stmt, ...], over: str, private: Set[str] = frozenset()) -> tuple[Stmt, ...]:
    """The statements that a group of threads does, with a barrier before each that uses memory which others of the
    group have written, or writes what they have read, since the barrier before. What is ``private`` needs none."""
    return _Barriers(over, private).body(body)


class _Barriers:
    """``read`` and ``written`` are the buffers that were since the last barrier."""

    def __init__(self, over: str, private: Set[str]):
        self.over = over
        self.private = private
        self.read: set[str] = set()
        self.written: set[str] = set()

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        found: list[Stmt] = []
        for stmt in body:
            found += self.stmt(stmt)
        return tuple(found)

    def stmt(self, stmt: Stmt) -> list[Stmt]:
        if isinstance(stmt, Read) and stmt.over == "block":
            self._clear()
            return [stmt]
        if isinstance(stmt, Loop) and stmt.kind not in ("thread", "lane"):
            return self._uniform(stmt)
        read, written = self._uses(stmt)
        conflict = bool(written & (self.read | self.written) or read & self.written)
        if conflict:
            self._clear()
        self.read |= read
        self.written |= written
        return [Barrier(self.over), stmt] if conflict else [stmt]

    def _uniform(self, loop: Loop) -> list[Stmt]:
        """A loop that all threads run alike: what its last iteration leaves meets what the next one does."""
        read, written = self._uses(loop)
        before: list[Stmt] = []
        if (read | written) & self.written or written & self.read:
            before = [Barrier(self.over)]
            self._clear()
        inside = self.body(loop.body)
        if written & (read | written) and (read & written or len(written) > 0):
            inside = (*inside, Barrier(self.over))
            self._clear()
        self.read |= read
        return [*before, replace(loop, body=inside)]

    def _uses(self, stmt: Stmt) -> tuple[set[str], set[str]]:
        inside = [s for s, _ in walk((stmt,))]
        read = {s.buffer for s in inside if isinstance(s, Load)}
        read |= {s.buffer for s in inside if isinstance(s, Store) and s.combine}
        return read - self.private, {s.buffer for s in inside if isinstance(s, Store)} - self.private

    def _clear(self) -> None:
        self.read, self.written = set(), set()
