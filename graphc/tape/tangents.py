"""The tangents of tensors in forward mode: open levels, and what a tensor carries at each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from graphc.ops.shape import zeros_like

levels: ContextVar[tuple[int, ...]] = ContextVar("graphc_forward_levels", default=())
"""The numbers of the open levels, outermost first; operations take tangents of these along."""
USED = [False]
"""Whether a level was ever opened; until then no operation looks for tangents."""


@contextmanager
def only(open_levels: tuple[int, ...]) -> Iterator[None]:
    """Inside, operations take only tangents of these levels along."""
    token = levels.set(open_levels)
    try:
        yield
    finally:
        levels.reset(token)


def tangent_of(tensor: Any, level: int) -> Any:
    """The tangent of a tensor at a level, or None."""
    return None if tensor._tangents is None else tensor._tangents.get(level)


def has_tangents(tensors: Sequence[Any]) -> bool:
    """Whether one of the tensors has a tangent of an open level."""
    if not levels.get():
        return False
    return any(t._tangents is not None and not t._tangents.keys().isdisjoint(levels.get()) for t in tensors)


def set_tangent(tensor: Any, level: int, tangent: Any) -> None:
    """Gives a tensor a tangent."""
    tensor._tangents = {**(tensor._tangents or {}), level: tangent}


def tangent_or_zeros(tensor: Any, level: int) -> Any:
    """The tangent of a tensor at a level; zeros where it has none."""
    found = tangent_of(tensor, level)
    return zeros_like(tensor) if found is None else found
