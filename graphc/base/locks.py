"""Locks that a child after fork() finds open, and sections of work that a fork waits for."""

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

PATIENCE = 10.0
"""Seconds that a fork waits for sections of other threads; then it goes on, and the child may hang where they stood."""


class Lock:
    """A re-entrant lock. In the child after fork() it is open unless the thread that forked held it: whoever else did
    is not there."""

    def __init__(self) -> None:
        self._inner = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._inner.acquire()

    def __exit__(self, *_: object) -> None:
        self._inner.release()

    def open_in_child(self) -> None:
        """Called in the child."""
        if self._inner.acquire(blocking=False):
            self._inner.release()
        else:
            self._inner = threading.RLock()


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


class cached_property(functools.cached_property[_T]):
    """As in Python 3.12: without the lock of 3.11, which all objects of a class share, so that their threads wait for
    each other, and a child after fork() for ever."""

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        if instance is None:
            return self
        found = self.func(instance)
        return instance.__dict__.setdefault(self.attrname, found)


class _Sections:
    """Work of threads that must not be cut in two by a fork, and the fork that waits for it."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.depths: dict[int, int] = {}
        """By thread: how many sections it is inside of."""
        self.forking = 0
        """The thread that forks, or 0."""

    def enter(self) -> None:
        me = threading.get_ident()
        with self.changed:
            while self.forking not in (0, me) and me not in self.depths:
                self.changed.wait(PATIENCE)
            self.depths[me] = self.depths.get(me, 0) + 1

    def leave(self) -> None:
        me = threading.get_ident()
        with self.changed:
            self.depths[me] -= 1
            if not self.depths[me]:
                del self.depths[me]
                self.changed.notify_all()

    def before_fork(self) -> None:
        me, end = threading.get_ident(), time.monotonic() + PATIENCE
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
"""How to take and give back the locks of libraries."""
_taken: list[Callable[[], object]] = []
"""What gives back the locks that the fork that is under way has taken."""


@contextmanager
def section() -> Iterator[None]:
    """A piece of work, such as one call of a compiler or one import, during which no other thread forks; a thread that
    wants to waits. It should last for less than a second."""
    _watch_forks()
    _sections.enter()
    try:
        yield
    finally:
        _sections.leave()


def hold_for_forks(take: Callable[[], object], give_back: Callable[[], object]) -> None:
    """Makes each fork take a re-entrant lock of a library before, and give it back in parent and child."""
    _libraries.append((take, give_back))


def _before_fork() -> None:
    _sections.before_fork()
    for take, give_back in list(_libraries):
        take()
        _taken.append(give_back)


def _after_fork_in_parent() -> None:
    while _taken:
        _taken.pop()()
    _sections.after_fork()


def _after_fork_in_child() -> None:
    global _sections
    mine = _sections.depths.get(threading.get_ident())
    _sections = _Sections()
    if mine:
        _sections.depths[threading.get_ident()] = mine
    while _taken:
        _taken.pop()()


@functools.cache
def _watch_forks() -> None:
    # NOTE: what is registered last runs first. These modules take locks of theirs before a fork, which sections may
    # want to have; so they are loaded first.
    for name in ("logging", "concurrent.futures.thread"):
        import_module(name)
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


def _open_locks() -> None:
    for lock in list(_locks):
        lock.open_in_child()


os.register_at_fork(after_in_child=_open_locks)
