"""Which rows of a whole batch this process has: their random numbers do not depend on how many processes there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Share(NamedTuple):
    """Rows ``rank``, ``rank + size``, ``rank + 2 * size`` and so on of a batch: what DistributedSampler deals to one of
    ``size`` processes, in the order in which one process alone would read all."""

    rank: int
    size: int


_current: ContextVar[Share | None] = ContextVar("graphc_share", default=None)


def current() -> Share | None:
    """The rows that draws are for; None for all."""
    return _current.get()


@contextmanager
def sharing(rank: int, size: int) -> Iterator[None]:
    """Within it, draws for the rows of a batch are those of this process's part of the whole one."""
    token = _current.set(Share(rank, size) if size > 1 else None)
    try:
        yield
    finally:
        _current.reset(token)


class SameShare:
    """The fact that draws are for the rows that they were for."""

    def __init__(self) -> None:
        self._share = _current.get()

    def holds(self) -> bool:
        """Whether they still are."""
        return _current.get() == self._share

    def why(self) -> str:
        """What has changed."""
        return f"rows for which random numbers are drawn: {_shown(self._share)} -> {_shown(_current.get())}"


def _shown(share: Share | None) -> str:
    return "all" if share is None else f"those of rank {share.rank} of {share.size}"
