"""Memory budgets as users state them: bytes, text with a unit, or a percentage."""

from __future__ import annotations

import re

from graphc.base.errors import ArgumentError
from graphc.base.records import dataclass

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_TEXT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*|%)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Budget:
    """Limit on temporary memory: bytes, or a fraction of the use without a budget."""

    text: str
    nbytes: int = 0
    share: float = 0.0

    @staticmethod
    def parse(value: int | str) -> Budget:
        """Parse bytes (``200_000_000``), text with a unit (``"200MB"``, ``"1.5 GiB"``) or a percentage (``"70%"``)."""
        match = _TEXT.fullmatch(value) if isinstance(value, str) else None
        number, unit = (float(match[1]), match[2].lower()) if match else (0.0, "")
        if isinstance(value, int) and not isinstance(value, bool):
            number = float(value)
        if number <= 0 or (unit != "%" and unit not in _UNITS) or (unit == "%" and number > 100):
            raise ArgumentError(
                f"memory={value!r} is not a memory budget",
                remedy='pass bytes, a text like "200MB", or a fraction of the plan like "70%"',
            )
        if unit == "%":
            return Budget(str(value), share=number / 100)
        return Budget(str(value), nbytes=int(number * _UNITS[unit]))

    def of(self, arena: int) -> int:
        """Return the limit in bytes, for a program that takes ``arena`` bytes without a budget."""
        return int(arena * self.share) if self.share else self.nbytes
