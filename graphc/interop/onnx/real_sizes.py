"""Real numbers computed from symbolic sizes, and their floors and truncations, which are sizes again."""

from __future__ import annotations

import math
from typing import Any

from graphc.base.sizes.size import Size, SizeNumber, fraction


def as_real(value: Any) -> Any:
    """Convert a size to a real number."""
    return value * 1.0


def whole_below(value: Any) -> Any:
    """Return the floor of ``value``.

    It stays symbolic for sums, products and quotients of sizes and fractions. For other values it is the floor in this
    call, which a trace then assumes.
    """
    if type(value) not in (Size, SizeNumber):
        return math.floor(value)
    ratio = fraction(value)
    return math.floor(float(value)) if ratio is None else ratio[0] // ratio[1]


def whole_part(value: Any) -> Any:
    """Return ``value`` truncated towards zero. It stays symbolic where ``whole_below`` does."""
    if type(value) not in (Size, SizeNumber):
        return math.trunc(value)
    ratio = fraction(value)
    if ratio is None:
        return math.trunc(float(value))
    numerator, denominator = ratio
    return numerator // denominator if numerator >= 0 else -(-numerator // denominator)
