"""Real numbers computed from symbolic sizes, and their floors and truncations, which are sizes again."""

from __future__ import annotations

import math
import operator
from typing import Any

from graphc.base.sizes.size import Size, SizeNumber

_LARGEST_DENOMINATOR = 1 << 20
"""Denominator up to which a float counts as a fraction: 0.5 and 1.75 do, 0.1 in binary does not."""


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
    ratio = _ratio(value)
    return math.floor(float(value)) if ratio is None else ratio[0] // ratio[1]


def whole_part(value: Any) -> Any:
    """Return ``value`` truncated towards zero. It stays symbolic where ``whole_below`` does."""
    if type(value) not in (Size, SizeNumber):
        return math.trunc(value)
    ratio = _ratio(value)
    if ratio is None:
        return math.trunc(float(value))
    numerator, denominator = ratio
    return numerator // denominator if numerator >= 0 else -(-numerator // denominator)


def _ratio(value: Any) -> tuple[Any, Any] | None:
    """Return ``value`` as a numerator and a positive denominator, both whole numbers. None where it is not a
    fraction."""
    if type(value) is not SizeNumber:
        ratio = (value, 1) if type(value) is Size else float(value).as_integer_ratio()
        return ratio if type(value) is Size or ratio[1] <= _LARGEST_DENOMINATOR else None
    if value.function not in _RULES:
        return None
    ratios = [_ratio(x) for x in value.operands]
    if any(p is None for p in ratios):
        return None
    (a, b), (c, d) = [p for p in ratios if p is not None]
    numerator, denominator = _RULES[value.function](a, b, c, d)
    if type(denominator) is not Size and denominator == 0:
        return None
    return (numerator, denominator) if denominator > 0 else (-numerator, -denominator)


_RULES: dict[Any, Any] = {
    operator.add: lambda a, b, c, d: (a * d + c * b, b * d),
    operator.sub: lambda a, b, c, d: (a * d - c * b, b * d),
    operator.mul: lambda a, b, c, d: (a * c, b * d),
    operator.truediv: lambda a, b, c, d: (a * d, b * c),
}
"""Numerator and denominator of the result for a/b and c/d."""
