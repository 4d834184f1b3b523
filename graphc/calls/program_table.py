"""The programs of a compiled function by signature, within limits that drop the least recently used ones."""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from graphc.base import config
from graphc.base.locks import Lock

SAME_ARGUMENTS = 16
"""Limit on programs for the same arguments and different states of the world outside. Calls try them in order."""
_PART_OF_MEMORY = 2
"""Divisor of the machine's memory for the default limit on programs."""


class CachedProgram(Protocol):
    """A program in a table."""

    used: int
    """A sequence number of the last use."""

    @property
    def is_stale(self) -> bool:
        """Whether the program will not fit again, or is not worth keeping."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes that dropping the program frees."""
        ...

    def prepacked(self) -> Iterable[np.ndarray]:
        """Return arrays packed from weights, which programs may share."""
        ...


P = TypeVar("P", bound=CachedProgram)


class ProgramTable(Generic[P]):
    """The programs of one compiled function.

    A dropped program still completes its running calls, which hold their data. The last used program of a function
    always stays. The tables of all functions share one limit of bytes, hence one lock.
    """

    def __init__(self, forget: Callable[[], None]):
        """``forget``, a method, is called after programs were dropped; it must drop other references to them."""
        self._programs: dict[Any, tuple[P, ...]] = {}
        self._forget = weakref.WeakMethod(forget)
        self.last: P | None = None
        """The most recently used program."""
        with _lock:
            _tables.add(self)

    def find(self, key: Any) -> tuple[P, ...]:
        """Return the programs of a signature, newest first."""
        return self._programs.get(key, ())

    def use(self, program: P) -> None:
        """Note the use of a program other than ``last``. Until now ``last`` was in use."""
        before = self.last  # other threads may drop it meanwhile
        if before is not None:
            before.used = next(_uses)
        program.used = next(_uses)
        self.last = program

    def add(self, key: Any, program: P, alone: bool = False) -> None:
        """Add a new program. It replaces all of its signature if ``alone``, else only the stale ones."""
        most = max(1, config.read().programs)
        with _lock:
            before = self.find(key)
            others = [] if alone else [p for p in before if not p.is_stale]
            if len(others) >= SAME_ARGUMENTS:
                others.remove(min(others, key=_age))
            self._programs[key] = (program, *others)
            self.use(program)
            while len(self) > most:
                self._drop(min((p for p in self if p is not program), key=_age))
            if len(others) < len(before):
                self._tell()

    def clear(self) -> None:
        """Drop all programs."""
        with _lock:
            self._programs.clear()
            self.last = None
            self._tell()

    def __iter__(self) -> Iterator[P]:
        return itertools.chain.from_iterable(tuple(self._programs.values()))

    def __len__(self) -> int:
        return sum(map(len, tuple(self._programs.values())))

    def items(self) -> list[tuple[Any, tuple[P, ...]]]:
        """Return signatures with their programs."""
        return list(self._programs.items())

    def __contains__(self, key: Any) -> bool:
        return key in self._programs

    def _drop(self, program: P) -> None:
        for key, programs in self.items():
            rest = tuple(p for p in programs if p is not program)
            if not rest:
                del self._programs[key]
            elif len(rest) < len(programs):
                self._programs[key] = rest
        self._tell()

    def _tell(self) -> None:
        forget = self._forget()
        if forget is not None:
            forget()


_lock = Lock()
_tables: weakref.WeakSet[ProgramTable[Any]] = weakref.WeakSet()
_uses = itertools.count(1)


def _age(program: CachedProgram) -> int:
    return program.used


def limit_bytes() -> int:
    """Return the limit on the bytes of all functions' programs together."""
    return config.read().program_memory or _memory() // _PART_OF_MEMORY


def _memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def held_bytes() -> int:
    """Return the bytes of the programs of all tables. Shared arrays count once."""
    with _lock:
        return _held([program for table in _tables for program in table])


def _held(programs: Iterable[CachedProgram]) -> int:
    own, shared = 0, {}
    for program in programs:
        own += program.nbytes
        shared.update({id(array): array.nbytes for array in program.prepacked()})
    return own + sum(shared.values())


def trim() -> None:
    """Drop the least recently used programs of any table until the rest is within the limit.

    Call it after the first run of a new program, which allocates its caches.
    """
    limit = limit_bytes()
    with _lock:
        tables = list(_tables)
        candidates = sorted(((p, t) for t in tables for p in t if p is not t.last), key=lambda pair: _age(pair[0]))
        staying = [p for t in tables for p in t]
        total = _held(staying)
        for program, table in candidates:
            if total <= limit:
                return
            table._drop(program)
            staying = [p for p in staying if p is not program]
            total = _held(staying)
