"""Tangents of tensors in forward mode: open levels, and each tensor's tangent by level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from graphc.ops.movement.shape import zeros_like
from graphc.tape.grad_mode import no_grad

levels: ContextVar[tuple[int, ...]] = ContextVar("graphc_forward_levels", default=())
"""Open levels, outermost first; operations propagate tangents of these."""
USED = [False]
"""Whether a level was ever opened; until then no operation looks for tangents."""


@contextmanager
def only(open_levels: tuple[int, ...]) -> Iterator[None]:
    """Propagate tangents of these levels only while the block runs."""
    token = levels.set(open_levels)
    try:
        yield
    finally:
        levels.reset(token)


@contextmanager
def constants() -> Iterator[None]:
    """Compute numbers without derivatives while the block runs: neither gradients nor tangents pass through it."""
    with no_grad(), only(()):
        yield


def tangent_of(tensor: Any, level: int) -> Any:
    """Return the tangent of a tensor at a level, or None."""
    return None if tensor._tangents is None else tensor._tangents.get(level)


def has_tangents(tensors: Sequence[Any]) -> bool:
    """Return whether one of the tensors has a tangent of an open level."""
    if not levels.get():
        return False
    return any(t._tangents is not None and not t._tangents.keys().isdisjoint(levels.get()) for t in tensors)


def set_tangent(tensor: Any, level: int, tangent: Any) -> None:
    """Set the tangent of a tensor at a level."""
    tensor._tangents = {**(tensor._tangents or {}), level: tangent}


def tangent_or_zeros(tensor: Any, level: int) -> Any:
    """Return the tangent of a tensor at a level; zeros if it has none."""
    tangent = tangent_of(tensor, level)
    return zeros_like(tensor) if tangent is None else tangent
