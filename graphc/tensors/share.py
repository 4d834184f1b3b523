"""Which rows of a whole batch this process has: random numbers of a row are the same, however many processes there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from graphc.ops import shape as shapes


class Share(NamedTuple):
    """Rows ``rank``, ``rank + size``, ``rank + 2 * size`` and so on of a batch."""

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


def of_rows(draw: Any, shape: tuple[Any, ...]) -> Any:
    """What ``draw`` gives for ``shape``, of which the first dimension are rows: this process's part of what it would
    give for the whole batch. Programs compute no more than that part."""
    share = _current.get()
    if share is None or not shape:
        return draw(shape)
    whole = draw((shape[0], share.size, *shape[1:]))
    zeros = (0,) * (len(shape) - 1)
    starts, stops = (0, share.rank, *zeros), (shape[0], share.rank + 1, *shape[1:])
    part = shapes.slice(whole, starts=starts, stops=stops, steps=(1,) * len(starts))
    return shapes.reshape(part, shape=shape)
