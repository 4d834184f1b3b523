"""Autocast state of the current thread and task: the element type to which operands of f32 products are rounded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from graphc.base.dtypes import DType

USED = [False]
"""Whether autocast was ever entered; until then no operation reads the context variable."""
current: ContextVar[DType | None] = ContextVar("graphc_autocast", default=None)
"""The element type of operands; None: autocast is off."""


@contextmanager
def suspended() -> Iterator[None]:
    """Switch autocast off while the block runs.

    Backward passes need it because their types follow from the forward pass, and so do functions that have rounded
    their operands themselves.
    """
    if not USED[0]:
        yield
        return
    token = current.set(None)
    try:
        yield
    finally:
        current.reset(token)


def is_autocast_enabled() -> bool:
    """Return whether operands of products are rounded here."""
    return USED[0] and current.get() is not None


def autocast_dtype() -> DType | None:
    """Return the type to which operands of products are rounded; None: autocast is off."""
    return current.get() if USED[0] else None
