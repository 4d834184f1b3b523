"""Relations of symbolic sizes that hold in all calls: order, sign, the tighter of two bounds, exact quotients."""

from __future__ import annotations

from typing import Any

from graphc.base.sizes.size import Dimension, Quotient, Size, always, bounds, divided, hint, is_size, terms
from graphc.base.sizes.size_bounds import atom_bounds
from graphc.base.sizes.size_pieces import pieces_of


def at_most(a: Any, b: Any) -> bool:
    """Return whether a <= b for all sizes; fast for ints."""
    return a <= b if type(a) is int and type(b) is int else always("<=", a, b)


def quotient_and_rest(a: Any, b: Any) -> tuple[Any, Any]:
    """Return (q, r) with a == q * b + r and all divisible terms in q; 0 <= r < b for ints."""
    return divmod(a, b) if type(a) is not Size and type(b) is not Size else divided(a, b)


def exact_quotient(a: Any, b: Any) -> Any:
    """Return a / b if it is a size for all values of the dimensions, else None."""
    if type(a) is int and type(b) is int:
        return a // b if a % b == 0 else None
    quotient, rest = divided(a, b)
    return quotient if type(rest) is not Size and rest == 0 else None


def sign(size: Any) -> int | None:
    """Return 1 if a size is never negative, -1 if it is never positive, None if the dimensions decide."""
    low, high = bounds(size)
    return 1 if low >= 0 else -1 if high <= 0 else None


def tighter(a: Any, b: Any, *, low: bool) -> Any:
    """Return the tighter of two lower (or upper) bounds: for all sizes, else for the hints."""
    if type(a) is not Size and type(b) is not Size:
        return max(a, b) if low else min(a, b)
    least, most = bounds(b - a)
    above = least >= 0 or (most > 0 and hint(b) >= hint(a))
    return b if above is low else a


def as_factor(value: Any) -> str:
    """Return the text of a size as the first factor of a product."""
    return f"({value})" if type(value) is Size and len(value.terms) > 1 else str(value)


def trend(size: Any) -> int:
    """Return 1 if a size never falls as its dimensions grow, -1 if it never rises, 0 if unknown."""
    pieces = pieces_of(terms(size))
    if pieces is not None:
        slopes = [slope for _, _, slope in pieces.segments(*atom_bounds(pieces.atom))]
        rising = (all(s >= 0 for s in slopes) - all(s <= 0 for s in slopes)) if any(slopes) else 0
        return rising * _of_monomial(((pieces.atom, 1),))
    signs = {(1 if factor > 0 else -1) * _of_monomial(monomial) for monomial, factor in terms(size) if monomial}
    return signs.pop() if len(signs) == 1 else 0


def _of_monomial(monomial: Any) -> int:
    if all(isinstance(atom, Dimension) for atom, _ in monomial):
        return 1
    ((atom, power), *others) = monomial
    if others or power != 1 or (isinstance(atom, Quotient) and is_size(atom.divisor)):
        return 0
    return trend(atom.operand)
