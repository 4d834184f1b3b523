"""Whether products of f32 are made of narrower factors in this thread and task, and which type they have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from graphc.base.dtypes import DType

USED = [False]
"""Whether it was ever asked for; until then no operation looks."""
current: ContextVar[DType | None] = ContextVar("graphc_autocast", default=None)
"""The type of factors, or None."""


@contextmanager
def suspended() -> Iterator[None]:
    """Inside, factors stay as they are: in backward passes, whose types follow from those of the forward pass, and in
    functions that have rounded their operands themselves."""
    if not USED[0]:
        yield
        return
    token = current.set(None)
    try:
        yield
    finally:
        current.reset(token)


def is_autocast_enabled() -> bool:
    """Whether factors of products become narrower here."""
    return USED[0] and current.get() is not None


def autocast_dtype() -> DType | None:
    """The type that factors of products become, or None where they stay as they are."""
    return current.get() if USED[0] else None
