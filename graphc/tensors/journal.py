"""Journals: what tensors that are written to in place held before, so that it can be put back for a while."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

_open: ContextVar[tuple[Journal, ...]] = ContextVar("graphc_journals", default=())
USED = [False]
"""Whether a journal was ever opened; until then no write looks for one."""


class _Entry(NamedTuple):
    owner: Callable[[], Any]
    """The memory, or None where it is gone."""
    before: Any
    """A copy of what it held."""
    counter: list[int] | None


class Journal:
    """What was written to while it was open: memory that no history of operations belongs to, such as buffers."""

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}

    def note(self, data: Any, counter: list[int] | None) -> None:
        """Keeps a copy of what is about to be written to for the first time."""
        owner = _owner(data)
        known = self._entries.get(id(owner))
        if known is not None and known.owner() is owner:
            return
        # NOTE: memory that only the block itself knows must not be kept alive by having been written to.
        found = weakref.ref(owner) if isinstance(owner, np.ndarray) else lambda: owner
        self._entries[id(owner)] = _Entry(found, owner.copy(), counter)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Takes down all writes of this thread, in journals that are open already too."""
        USED[0] = True
        token = _open.set((*_open.get(), self))
        try:
            yield
        finally:
            _open.reset(token)
            self._entries = {key: e for key, e in self._entries.items() if e.owner() is not None}

    def forget(self, data: Any) -> None:
        """Leaves memory as it is from now on."""
        self._entries.pop(id(_owner(data)), None)

    def holds(self, counter: list[int] | None) -> bool:
        """Whether the memory of tensors with this counter is in it."""
        return any(e.counter is counter for e in self._entries.values())

    @contextmanager
    def rewound(self) -> Iterator[None]:
        """Inside, the memory holds what it held before, and again what it holds now afterwards, whatever is written."""
        present = [(owner, e, owner.copy()) for e in self._entries.values() if (owner := e.owner()) is not None]
        try:
            for owner, entry, _ in present:
                _fill(owner, entry.before, entry.counter)
            yield
        finally:
            for owner, entry, now in present:
                _fill(owner, now, entry.counter)


def note_write(data: Any, counter: list[int] | None) -> None:
    """Tells all open journals that memory is about to be written to."""
    for journal in _open.get():
        journal.note(data, counter)


def _owner(data: Any) -> Any:
    while isinstance(data, np.ndarray) and isinstance(data.base, np.ndarray):
        data = data.base
    return data


def _fill(owner: Any, content: Any, counter: list[int] | None) -> None:
    if isinstance(owner, np.ndarray):
        np.copyto(owner, content)
    else:
        owner.assign(content)
    if counter is not None:
        counter[0] += 1
