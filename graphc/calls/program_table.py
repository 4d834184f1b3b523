"""The programs of a compiled function by signature, within limits: the one that was not used for the longest goes."""

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
"""Programs that are kept for the same arguments and different states of what is outside: each call looks at them in
order."""
_PART_OF_MEMORY = 2
"""Programs may hold the machine's memory divided by this where no option says how much."""


class Kept(Protocol):
    """What a table holds."""

    used: int
    """A number that is larger the later it was used."""

    @property
    def is_stale(self) -> bool:
        """Whether it will not fit again, or should not."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes that go with it."""
        ...

    def prepacked(self) -> Iterable[np.ndarray]:
        """Arrays made of weights, which it may share with others."""
        ...


P = TypeVar("P", bound=Kept)


class ProgramTable(Generic[P]):
    """The programs of one compiled function.

    One that goes while a call is in it runs to its end: the call holds what it needs. What a function used last stays,
    whatever it takes. Tables of all functions share one limit of bytes, hence one lock."""

    def __init__(self, forget: Callable[[], None]):
        """``forget``, a method, is called after programs have gone, and drops what else refers to them."""
        self._programs: dict[Any, tuple[P, ...]] = {}
        self._forget = weakref.WeakMethod(forget)
        self.last: P | None = None
        """The program that was used last."""
        with _lock:
            _tables.add(self)

    def find(self, key: Any) -> tuple[P, ...]:
        """The programs of a signature, the newest first."""
        return self._programs.get(key, ())

    def use(self, program: P) -> None:
        """To be called where a program is used that is not ``last``; until then that one was in use."""
        before = self.last  # other threads may drop it meanwhile
        if before is not None:
            before.used = next(_uses)
        program.used = next(_uses)
        self.last = program

    def add(self, key: Any, program: P, alone: bool = False) -> None:
        """Keeps a new program, ``alone`` of its signature or with those of the others that are not stale."""
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
        """Drops all programs."""
        with _lock:
            self._programs.clear()
            self.last = None
            self._tell()

    def __iter__(self) -> Iterator[P]:
        return itertools.chain.from_iterable(tuple(self._programs.values()))

    def __len__(self) -> int:
        return sum(map(len, tuple(self._programs.values())))

    def items(self) -> list[tuple[Any, tuple[P, ...]]]:
        """Signatures with their programs."""
        return list(self._programs.items())

    def __contains__(self, key: Any) -> bool:
        return key in self._programs

    def _drop(self, program: P) -> None:
        for key, found in self.items():
            rest = tuple(p for p in found if p is not program)
            if not rest:
                del self._programs[key]
            elif len(rest) < len(found):
                self._programs[key] = rest
        self._tell()

    def _tell(self) -> None:
        forget = self._forget()
        if forget is not None:
            forget()


_lock = Lock()
_tables: weakref.WeakSet[ProgramTable[Any]] = weakref.WeakSet()
_uses = itertools.count(1)


def _age(program: Kept) -> int:
    return program.used


def limit_bytes() -> int:
    """How many bytes the programs of all functions may hold together."""
    return config.read().program_memory or _memory() // _PART_OF_MEMORY


def _memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def held_bytes() -> int:
    """Bytes that the programs of all tables hold; arrays that several share count once."""
    with _lock:
        return _held([program for table in _tables for program in table])


def _held(programs: Iterable[Kept]) -> int:
    own, shared = 0, {}
    for program in programs:
        own += program.nbytes
        shared.update({id(array): array.nbytes for array in program.prepacked()})
    return own + sum(shared.values())


def trim() -> None:
    """Drops programs of any table, those that were not used for the longest first, until all hold no more than they
    may. To be called after a new program has run, when it has made all that it keeps."""
    limit = limit_bytes()
    with _lock:
        tables = list(_tables)
        kept = sorted(((p, t) for t in tables for p in t if p is not t.last), key=lambda pair: _age(pair[0]))
        staying = [p for t in tables for p in t]
        held = _held(staying)
        for program, table in kept:
            if held <= limit:
                return
            table._drop(program)
            staying = [p for p in staying if p is not program]
            held = _held(staying)
