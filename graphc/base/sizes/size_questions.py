"""Who answers questions about sizes that their ranges do not decide."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Protocol


class Asker(Protocol):
    """What answers questions that ranges do not decide."""

    def ask(self, relation: str, a: Any, b: Any) -> bool:
        """Whether ``a == b`` or ``a <= b``, as ``relation`` says."""
        ...

    def value(self, size: Any) -> int:
        """The number that a size is."""
        ...

    def expected(self, size: Any, exact: bool) -> int:
        """A number that is like a size."""
        ...


asker: ContextVar[Asker | None] = ContextVar("graphc_size_questions", default=None)
"""Who is asked at present; see base.assumptions."""
