"""Programs by key: found or made, limited in number and bytes; the least recently used ones are dropped."""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from graphc.base import config
from graphc.base.errors import GraphcError
from graphc.base.locks import Lock

SAME_KEY = 16
"""Limit on programs with one key, for different states of the world outside or different assumptions."""
_MOST_QUESTIONS = 16
"""Limit on the questions about sizes that stages of the compiler may ask for one program."""
_PART_OF_MEMORY = 2
"""Divisor of the machine's memory for the default limit on programs."""


class StoredProgram(Protocol):
    """A program in a store.

    It may have ``is_stale``, true where it will not fit again or is not worth keeping, and ``prepacked()``, which
    returns arrays packed from weights, which programs may share. The store sets ``used``.
    """

    @property
    def nbytes(self) -> int:
        """Bytes that dropping the program frees."""
        ...


P = TypeVar("P", bound=StoredProgram)
_T = TypeVar("_T")


class ProgramStore(Generic[P]):
    """The programs of one owner, such as a compiled function.

    A dropped program still completes its running calls, which hold their data. The last used program of an owner
    always stays. All stores share one limit of bytes, hence one lock.
    """

    def __init__(self, forget: Callable[[], None] | None = None, limit: int | None = None):
        """``forget``, a method, is called after programs were dropped; it must drop other references to them.

        ``limit`` is the maximum number of programs, of which the oldest goes (default: GRAPHC_PROGRAMS, of which the
        least recently used one goes).
        """
        self._programs: dict[Any, tuple[P, ...]] = {}
        self._making: dict[Any, Lock] = {}
        """Locks held while the program of a key is made."""
        self._forget = None if forget is None else weakref.WeakMethod(forget)
        self._limit = limit
        self.last: P | None = None
        """The most recently used program."""
        with _lock:
            _stores.add(self)

    def find(self, key: Any) -> tuple[P, ...]:
        """Return the programs of a key, newest first."""
        return self._programs.get(key, ())

    def find_or_make(self, key: Any, make: Callable[[], P]) -> P:
        """Return the one program of a key. Make it at the first use; meanwhile calls with other keys proceed."""
        programs = self._programs.get(key)
        if not programs:
            with _lock:
                making = self._making.setdefault(key, Lock())
            with making:
                programs = self._programs.get(key)
                if not programs:
                    programs = (make(),)
                    self.add(key, programs[0], alone=True)
                    trim()
            self._making.pop(key, None)
        if self._limit is None and programs[0] is not self.last:
            self.use(programs[0])
        return programs[0]

    def use(self, program: P) -> None:
        """Note the use of a program other than ``last``. Until now ``last`` was in use."""
        before: Any = self.last  # other threads may drop it meanwhile
        if before is not None:
            before.used = next(_uses)
        program.used = next(_uses)  # type: ignore[attr-defined]
        self.last = program

    def add(self, key: Any, program: P, alone: bool = False) -> None:
        """Add a new program. It replaces all with its key if ``alone``, else only the stale ones."""
        most = self._limit or max(1, config.read().programs)
        with _lock:
            before = self.find(key)
            others = [] if alone else [p for p in before if not getattr(p, "is_stale", False)]
            if len(others) >= SAME_KEY:
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
        """Return keys with their programs."""
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
        forget = None if self._forget is None else self._forget()
        if forget is not None:
            forget()


def until_answered(make: Callable[[], _T], answered: Callable[[GraphcError], bool]) -> _T:
    """Return the result of ``make``. Repeat it after each error whose cause is a question that ``answered`` answers."""
    for _ in range(_MOST_QUESTIONS):
        try:
            return make()
        except GraphcError as error:
            if not answered(error):
                raise
    return make()


class OneForAll:
    """The attempt to serve all sizes of named dimensions by one program, until no such program can be made."""

    def __init__(self, name: str):
        """``name`` names the function or graph in the warning."""
        self._name = name
        self.holds = True
        """False after making a program for all sizes failed."""

    def make(
        self,
        general: Callable[[], _T],
        alone: Callable[[], _T],
        answered: Callable[[GraphcError], bool] = lambda _: False,
    ) -> _T:
        """Return the program that ``general`` makes for all sizes, or the one of ``alone``, for the sizes of a call.

        ``answered`` returns whether ``general`` may succeed after an error, because its cause is a question about sizes
        that now has an answer.
        """
        if not self.holds:
            return alone()
        try:
            return until_answered(general, answered)
        except GraphcError as error:
            # NOTE: if the error has another cause, making the program for the call's sizes raises it again.
            program = alone()
            self.holds = False
            config.logger("compile").warning(
                "%s is compiled for each size of its dimensions: %s", self._name, error.what
            )
            return program


_lock = Lock()
_stores: weakref.WeakSet[ProgramStore[Any]] = weakref.WeakSet()
_uses = itertools.count(1)


def _age(program: Any) -> int:
    return program.used


def _limit_bytes() -> int:
    """Return the limit on the bytes of all owners' programs together."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return config.read().program_memory or memory // _PART_OF_MEMORY


def _held(programs: Iterable[Any]) -> int:
    """Return the bytes of programs. Shared arrays count once."""
    own, shared = 0, {}
    for program in programs:
        own += program.nbytes
        if hasattr(program, "prepacked"):
            shared.update({id(array): array.nbytes for array in program.prepacked()})
    return own + sum(shared.values())


def trim() -> None:
    """Drop the least recently used programs of any store until the rest is within the limit.

    Call it after the first run of a new program, which allocates its caches.
    """
    limit = _limit_bytes()
    with _lock:
        stores = list(_stores)
        owned = [(p, s) for s in stores for p in s if p is not s.last and p.nbytes]
        candidates = sorted(owned, key=lambda pair: _age(pair[0]))
        staying = [p for s in stores for p in s]
        total = _held(staying)
        for program, store in candidates:
            if total <= limit:
                return
            store._drop(program)
            staying = [p for p in staying if p is not program]
            total = _held(staying)
