"""The import path of PyTorch for ways to compute attention: hints, since the compiler chooses by itself."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from graphc.base.errors import ArgumentError

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """Ways to compute ``scaled_dot_product_attention``, by PyTorch's names and numbers."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: SDPBackend | Iterable[SDPBackend], set_priority: bool = False) -> Iterator[None]:
    """Inside, attention may be computed in these ways, which give the same but for rounding; what is there decides.
    Raises ArgumentError for what is no way."""
    named = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not named or not all(isinstance(b, SDPBackend) for b in named):
        raise ArgumentError(f"sdpa_kernel takes ways to compute attention, got {backends!r}", remedy="SDPBackend.MATH")
    yield
