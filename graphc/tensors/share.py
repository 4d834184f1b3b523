"""This process's share of the rows of a global batch: random numbers do not depend on the number of processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from graphc.base.records import NamedTuple


class Share(NamedTuple):
    """Rows ``rank``, ``rank + size``, ``rank + 2 * size`` and so on of a batch: the rows that DistributedSampler gives
    one of ``size`` processes, in the order in which a single process would read all."""

    rank: int
    size: int


_current: ContextVar[Share | None] = ContextVar("graphc_share", default=None)


def current() -> Share | None:
    """Return the share of rows that draws are for; None for all."""
    return _current.get()


@contextmanager
def sharing(rank: int, size: int) -> Iterator[None]:
    """Restrict draws for the rows of a batch to this process's share inside of the block."""
    token = _current.set(Share(rank, size) if size > 1 else None)
    try:
        yield
    finally:
        _current.reset(token)


class SameShare:
    """The fact that draws are still for the same share of rows."""

    def __init__(self) -> None:
        self._share = _current.get()

    def holds(self) -> bool:
        """Return whether the share is unchanged."""
        return _current.get() == self._share

    def why(self) -> str:
        """Describe the change."""
        return f"rows for which random numbers are drawn: {_shown(self._share)} -> {_shown(_current.get())}"


def _shown(share: Share | None) -> str:
    return "all" if share is None else f"those of rank {share.rank} of {share.size}"
