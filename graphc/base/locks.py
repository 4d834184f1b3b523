"""Locks released in a child after fork(), and critical sections that a fork waits for."""

from __future__ import annotations

import functools
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

_T = TypeVar("_T")

FORK_TIMEOUT = 10.0
"""Seconds that a fork waits for sections of other threads. It then proceeds, and the child may hang on their locks."""


class Lock:
    """Re-entrant lock. The child after fork() finds it released unless the forking thread held it, because the other
    threads do not exist there."""

    def __init__(self) -> None:
        self._inner = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._inner.acquire()

    def __exit__(self, *_: object) -> None:
        self._inner.release()

    def open_in_child(self) -> None:
        """Release the lock in the child, unless the thread that forked holds it."""
        if self._inner.acquire(blocking=False):
            self._inner.release()
        else:
            self._inner = threading.RLock()


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


class cached_property(functools.cached_property[_T]):
    """Cached property without a lock, as in Python 3.12.

    The lock of 3.11 is shared by all objects of a class: their threads wait for each other, and a child after fork()
    may wait for ever.
    """

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        if instance is None:
            return self
        result = self.func(instance)
        return instance.__dict__.setdefault(self.attrname, result)


class _Sections:
    """Counter of the critical sections in each thread, and the fork that waits for them."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.depths: dict[int, int] = {}
        """Nesting depth of sections, by thread."""
        self.forking = 0
        """Identifier of the forking thread, or 0."""

    def enter(self) -> None:
        me = threading.get_ident()
        with self.changed:
            while self.forking not in (0, me) and me not in self.depths:
                self.changed.wait(FORK_TIMEOUT)
            self.depths[me] = self.depths.get(me, 0) + 1

    def leave(self) -> None:
        me = threading.get_ident()
        with self.changed:
            self.depths[me] -= 1
            if not self.depths[me]:
                del self.depths[me]
                self.changed.notify_all()

    def before_fork(self) -> None:
        me, end = threading.get_ident(), time.monotonic() + FORK_TIMEOUT
        with self.changed:
            while self.forking not in (0, me) and time.monotonic() < end:
                self.changed.wait(end - time.monotonic())
            self.forking = me
            while self.depths.keys() - {me} and time.monotonic() < end:
                self.changed.wait(end - time.monotonic())

    def after_fork(self) -> None:
        with self.changed:
            self.forking = 0
            self.changed.notify_all()


_sections = _Sections()
_libraries: list[tuple[Callable[[], object], Callable[[], object]]] = []
"""Functions that acquire and release the locks of libraries."""
_releases: list[Callable[[], object]] = []
"""Functions that release the library locks which the current fork has acquired."""


@contextmanager
def section() -> Iterator[None]:
    """Keep other threads from forking while the block runs, such as one call of a compiler or one import.

    Threads that want to fork wait, so a section should last less than a second.
    """
    _watch_forks()
    _sections.enter()
    try:
        yield
    finally:
        _sections.leave()


def hold_for_forks(take: Callable[[], object], give_back: Callable[[], object]) -> None:
    """Make each fork acquire a re-entrant lock of a library first, and release it in parent and child."""
    _libraries.append((take, give_back))


def _before_fork() -> None:
    _sections.before_fork()
    for take, give_back in list(_libraries):
        take()
        _releases.append(give_back)


def _after_fork_in_parent() -> None:
    while _releases:
        _releases.pop()()
    _sections.after_fork()


def _after_fork_in_child() -> None:
    global _sections
    mine = _sections.depths.get(threading.get_ident())
    _sections = _Sections()
    if mine:
        _sections.depths[threading.get_ident()] = mine
    while _releases:
        _releases.pop()()


@functools.cache
def _watch_forks() -> None:
    # NOTE: the handler that is registered last runs first. These modules acquire locks of theirs before a fork, which
    # sections may need, so load them first.
    for name in ("logging", "concurrent.futures.thread"):
        import_module(name)
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


def _open_locks() -> None:
    for lock in list(_locks):
        lock.open_in_child()


os.register_at_fork(after_in_child=_open_locks)
