"""The import path of PyTorch for attention backends, which are only hints: the compiler chooses the algorithm."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from graphc.base.errors import ArgumentError

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """Algorithms for ``scaled_dot_product_attention``, with PyTorch's names and numbers."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: SDPBackend | Iterable[SDPBackend], set_priority: bool = False) -> Iterator[None]:
    """Accept the attention algorithms allowed in a ``with`` block; they give equal results up to rounding.

    The compiler ignores them and chooses by itself. Raises ArgumentError for values other than SDPBackend.
    """
    chosen = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not chosen or not all(isinstance(b, SDPBackend) for b in chosen):
        raise ArgumentError(
            f"sdpa_kernel: expected SDPBackend values, got {backends!r}", remedy="pass for example SDPBackend.MATH"
        )
    yield
