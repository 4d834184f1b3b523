"""Real numbers computed from sizes of named dimensions, and the whole numbers below them, which are sizes again."""

from __future__ import annotations

import math
import operator
from typing import Any

from graphc.base.sizes.size import Size, SizeNumber

_LARGEST_DENOMINATOR = 1 << 20
"""Of numbers that count as fractions: 0.5 and 1.75 do, 0.1 in binary does not."""


def as_real(value: Any) -> Any:
    """A size as a real number."""
    return value * 1.0


def whole_below(value: Any) -> Any:
    """The largest whole number that is not above. Of sums, products and quotients of sizes and fractions it is a size;
    of others that of this call, which a trace assumes."""
    if type(value) not in (Size, SizeNumber):
        return math.floor(value)
    ratio = _ratio(value)
    return math.floor(float(value)) if ratio is None else ratio[0] // ratio[1]


def whole_part(value: Any) -> Any:
    """Without what lies behind the point."""
    if type(value) not in (Size, SizeNumber):
        return math.trunc(value)
    ratio = _ratio(value)
    if ratio is None:
        return math.trunc(float(value))
    above, below = ratio
    return above // below if above >= 0 else -(-above // below)


def _ratio(value: Any) -> tuple[Any, Any] | None:
    """A number as a quotient of whole ones with a positive divisor; None where it is none."""
    if type(value) is not SizeNumber:
        found = (value, 1) if type(value) is Size else float(value).as_integer_ratio()
        return found if type(value) is Size or found[1] <= _LARGEST_DENOMINATOR else None
    if value.function not in _RULES:
        return None
    parts = [_ratio(x) for x in value.operands]
    if any(p is None for p in parts):
        return None
    (a, b), (c, d) = [p for p in parts if p is not None]
    above, below = _RULES[value.function](a, b, c, d)
    if type(below) is not Size and below == 0:
        return None
    return (above, below) if below > 0 else (-above, -below)


_RULES: dict[Any, Any] = {
    operator.add: lambda a, b, c, d: (a * d + c * b, b * d),
    operator.sub: lambda a, b, c, d: (a * d - c * b, b * d),
    operator.mul: lambda a, b, c, d: (a * c, b * d),
    operator.truediv: lambda a, b, c, d: (a * d, b * c),
}
"""Of a/b and c/d."""
