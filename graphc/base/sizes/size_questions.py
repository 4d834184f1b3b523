"""Resolver of comparisons of symbolic sizes that bounds alone cannot decide."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Protocol


class Asker(Protocol):
    """Resolver of size comparisons that bounds leave open."""

    def ask(self, relation: str, a: Any, b: Any) -> bool:
        """Return whether ``a == b`` or ``a <= b``, as ``relation`` says."""
        ...

    def value(self, size: Any) -> int:
        """Return the number for a size; may record an assumption."""
        ...

    def expected(self, size: Any, exact: bool) -> int:
        """Return a typical value of a size."""
        ...


asker: ContextVar[Asker | None] = ContextVar("graphc_size_questions", default=None)
"""The current resolver; see base.sizes.assumptions."""
access_asker: ContextVar[Asker | None] = ContextVar("graphc_access_questions", default=None)
"""The resolver for accesses of kernels whose range the verifier cannot prove; None where no trace may assume it."""
