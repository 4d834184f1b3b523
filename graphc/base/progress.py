"""Signs of life of long work: one line on a terminal, and the counts that loops report to it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from graphc.base import config

_T = TypeVar("_T")
WIDTH = 100
"""Largest number of characters of a line."""
_CLEAR = "\r\x1b[K"


class TerminalLine:
    """A line on stderr that each write replaces. It writes nothing unless stderr is a terminal and GRAPHC_PROGRESS is
    on, so files, pipes and notebooks get none.
    """

    def __init__(self) -> None:
        self.is_visible = config.read().progress and sys.stderr is not None and sys.stderr.isatty()

    def write(self, text: str) -> None:
        """Replace the line."""
        if not self.is_visible:
            return
        try:
            sys.stderr.write(_CLEAR + text[:WIDTH])
            sys.stderr.flush()
        except (OSError, ValueError):  # the terminal was closed
            self.is_visible = False

    def clear(self) -> None:
        """Erase the line."""
        self.write("")


_listener: ContextVar[Callable[[int, int], None] | None] = ContextVar("graphc_counts", default=None)


@contextmanager
def listening(tell: Callable[[int, int], None]) -> Iterator[None]:
    """Call ``tell`` with the items done and the number of all items while loops of ``counted`` run in the block."""
    token = _listener.set(tell)
    try:
        yield
    finally:
        _listener.reset(token)


def counted(items: Collection[_T]) -> Iterator[_T]:
    """Yield the items. Tell the listener before each how many are done.

    Example:
        >>> from graphc.base.progress import counted, listening
        >>> with listening(lambda done, count: print(f"{done} of {count}")):
        ...     squares = [n * n for n in counted([3, 4])]
        0 of 2
        1 of 2
    """
    tell = _listener.get()
    for done, item in enumerate(items):
        if tell is not None:
            tell(done, len(items))
        yield item
