"""Plain attributes of modules that a trace reads, and whether they are still what it saw."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from graphc.changes import COUNT

_MISSING = object()
_VALUES = (bool, int, float, str, tuple, type(None))
"""Compared by value; everything else by identity."""
_GUARDED_ELSEWHERE = frozenset({"training", "_is_full_backward_hook", "__dict__", "__class__"})

_watched: list[type[Any]] = []
_lock = threading.Lock()
_running = [0]
"""How many traces record, in all threads."""


class Read(NamedTuple):
    """One attribute of an object and what the trace got; an attribute of the class is none of the object."""

    owner: Any
    fields: dict[str, Any]
    name: str
    value: Any

    def now(self) -> Any:
        """What it is at present."""
        return self.fields.get(self.name, _MISSING)

    def is_current(self) -> bool:
        """Whether it is what the trace got."""
        now = self.now()
        return now is self.value or (
            now.__class__ is self.value.__class__ and self.value.__class__ in _VALUES and bool(now == self.value)
        )

    def describe(self) -> str:
        """How it has changed."""
        before, now = ("none" if v is _MISSING else repr(v) for v in (self.value, self.now()))
        return f"attribute {self.name!r} of {type(self.owner).__name__}: {before} -> {now}"


class Reads:
    """The attributes that a trace read and did not assign itself."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, str], Read] = {}
        self._kept: tuple[Read, ...] = ()
        self._seen = -1
        """The count of changes when ``are_current`` looked last and was true."""

    def note(self, owner: Any, fields: dict[str, Any], name: str) -> None:
        """Keeps the first value of an attribute that is read."""
        key = (id(fields), name)
        if key not in self._found:
            self._found[key] = Read(owner, fields, name, fields.get(name, _MISSING))

    def finish(self) -> None:
        """Ends recording. What the trace has assigned is not compared: it would never be what it was."""
        self._kept = tuple(read for read in self._found.values() if read.is_current())
        self._found = {}

    def are_current(self) -> bool:
        """Whether every attribute is what the trace got."""
        count = COUNT[0]
        if self._seen != count:
            if not all([read.is_current() for read in self._kept]):
                return False
            self._seen = count
        return True

    def changed(self) -> list[str]:
        """How attributes have changed."""
        return [read.describe() for read in self._kept if not read.is_current()]


_recorder: ContextVar[Reads | None] = ContextVar("graphc_attribute_reads", default=None)


def watch(kind: type[Any]) -> None:
    """Makes reads of attributes of ``kind`` and its subclasses visible to ``recording``, one that is running too."""
    with _lock:
        _watched.append(kind)
        if _running[0]:
            setattr(kind, "__getattribute__", _read)  # noqa: B010


@contextmanager
def recording() -> Iterator[Reads]:
    """Records in this thread which attributes of watched objects are read; the classes get a slower way to read
    attributes for as long."""
    reads = Reads()
    token = _recorder.set(reads)
    _switch(1)
    try:
        yield reads
    finally:
        _switch(-1)
        _recorder.reset(token)
        reads.finish()


def _switch(by: int) -> None:
    with _lock:
        before, _running[0] = _running[0], _running[0] + by
        for kind in _watched:
            if not before:
                setattr(kind, "__getattribute__", _read)  # noqa: B010
            elif not _running[0]:
                del kind.__getattribute__


def _read(owner: Any, name: str) -> Any:
    value = object.__getattribute__(owner, name)
    reads = _recorder.get()
    if reads is not None and name not in _GUARDED_ELSEWHERE:
        fields = object.__getattribute__(owner, "__dict__")
        if name in fields or value.__class__ in _VALUES:
            reads.note(owner, fields, name)
    return value
