"""Pack and unpack hooks of tensors saved for a backward pass."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

saving: ContextVar[tuple[Callable[[Any], Any], Callable[[Any], Any]] | None] = ContextVar(
    "graphc_saved_tensors_hooks", default=None
)
"""Innermost hooks of saved tensors: (pack, unpack)."""
