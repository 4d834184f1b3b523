"""Barriers between threads of a group, for reads after writes and writes after accesses of other threads."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from graphc.ir.kernel.statements import Barrier, Load, Loop, Read, Stmt, Store, walk


def put_barriers(body: tuple[Stmt, ...], over: str, private: Set[str] = frozenset()) -> tuple[Stmt, ...]:
    """Insert barriers into the statements of a group of threads.

    A barrier goes before each statement that reads or writes a buffer written by other threads since the last barrier,
    or writes one read by them. The buffers ``private`` need none.
    """
    return _Barriers(over, private).body(body)


class _Barriers:
    """Inserter of barriers; ``read`` and ``written`` are the buffers accessed since the last barrier."""

    def __init__(self, over: str, private: Set[str]):
        self.over = over
        self.private = private
        self.read: set[str] = set()
        self.written: set[str] = set()

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        statements: list[Stmt] = []
        for stmt in body:
            statements += self.stmt(stmt)
        return tuple(statements)

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
        """Insert barriers into a loop that all threads run alike: also between each iteration and the next one."""
        read, written = self._uses(loop)
        before: list[Stmt] = []
        if (read | written) & self.written or written & self.read:
            before = [Barrier(self.over)]
            self._clear()
        inside = self.body(loop.body)
        if written:
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
