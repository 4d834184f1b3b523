"""What code that holds for all sizes asks of them: order, signs, the tighter one of two bounds, exact quotients."""

from __future__ import annotations

from typing import Any

from graphc.base.sizes.size import Size, always, bounds, divided, hint


def at_most(a: Any, b: Any) -> bool:
    """Whether a <= b for all sizes; quick for numbers."""
    return a <= b if type(a) is int and type(b) is int else always("<=", a, b)


def quotient_and_rest(a: Any, b: Any) -> tuple[Any, Any]:
    """(q, r) with a == q * b + r, where what is divisible is in q; of numbers 0 <= r < b."""
    return divmod(a, b) if type(a) is not Size and type(b) is not Size else divided(a, b)


def exact_quotient(a: Any, b: Any) -> Any:
    """a / b where that is a size for all sizes of the dimensions, else None."""
    if type(a) is int and type(b) is int:
        return a // b if a % b == 0 else None
    whole, rest = divided(a, b)
    return whole if type(rest) is not Size and rest == 0 else None


def sign(size: Any) -> int | None:
    """1 of what is never negative, -1 of what is never positive, None where that depends on the dimensions."""
    low, high = bounds(size)
    return 1 if low >= 0 else -1 if high <= 0 else None


def tighter(a: Any, b: Any, *, low: bool) -> Any:
    """Which of two bounds from below (or above) says more: for all sizes, or where that is open for the hints."""
    if type(a) is not Size and type(b) is not Size:
        return max(a, b) if low else min(a, b)
    least, most = bounds(b - a)
    above = least >= 0 or (most > 0 and hint(b) >= hint(a))
    return b if above is low else a


def as_factor(value: Any) -> str:
    """The text of a size as the first factor of a product."""
    return f"({value})" if type(value) is Size and len(value.terms) > 1 else str(value)
