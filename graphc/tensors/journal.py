"""Journals: copies of tensors from before in-place writes, for restoring their contents temporarily."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from graphc.base.records import NamedTuple

OPEN: ContextVar[tuple[Journal, ...]] = ContextVar("graphc_journals", default=())
"""The open journals of this thread."""
USED = [False]
"""Whether a journal was ever opened; until then no write checks for one."""


class _Entry(NamedTuple):
    owner: Callable[[], Any]
    """Return the memory, or None if it is gone."""
    before: Any
    """A copy of the memory before its first write."""
    counter: list[int] | None


class Journal:
    """Record of writes, while open, to memory outside of any autograd history, such as buffers."""

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}

    def note(self, data: Any, counter: list[int] | None) -> None:
        """Copy memory before its first write."""
        owner = _owner(data)
        entry = self._entries.get(id(owner))
        if entry is not None and entry.owner() is owner:
            return
        # NOTE: a weak reference, so that a write does not keep memory alive that only the block itself uses.
        owner_reference = weakref.ref(owner) if isinstance(owner, np.ndarray) else lambda: owner
        self._entries[id(owner)] = _Entry(owner_reference, owner.copy(), counter)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Record all writes of this thread, also in journals already open."""
        USED[0] = True
        token = OPEN.set((*OPEN.get(), self))
        try:
            yield
        finally:
            OPEN.reset(token)
            self._entries = {key: e for key, e in self._entries.items() if e.owner() is not None}

    def forget(self, data: Any) -> None:
        """Stop restoring this memory."""
        self._entries.pop(id(_owner(data)), None)

    def holds(self, counter: list[int] | None) -> bool:
        """Return whether the journal holds memory of tensors with this version counter."""
        return any(e.counter is counter for e in self._entries.values())

    @contextmanager
    def rewound(self) -> Iterator[None]:
        """Restore the recorded contents inside of the block, and the present ones after it."""
        present = [(owner, e, owner.copy()) for e in self._entries.values() if (owner := e.owner()) is not None]
        try:
            for owner, entry, _ in present:
                _fill(owner, entry.before, entry.counter)
            yield
        finally:
            for owner, entry, now in present:
                _fill(owner, now, entry.counter)


def note_write(data: Any, counter: list[int] | None) -> None:
    """Report a write to memory, before it, to all open journals."""
    for journal in OPEN.get():
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
