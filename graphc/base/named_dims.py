"""Named dimensions as users write them, and those on which sizes depend."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.size import LARGEST, Dimension, Quotient, Size, terms


def Dim(
    name: str,
    min: int = 1,
    max: int = LARGEST,
    hint: int | None = None,
    common: Sequence[int] = (),
) -> Any:
    """A named dimension of which each call has its own size, ``min`` to ``max`` (included).

    ``hint`` is the size for which decisions are made (32, or the nearest in the range). For each size in ``common`` a
    program of its own is made, too. ``batch + 1``, ``2 * time`` and quotients are sizes as well. Raises ArgumentError
    for names that are no identifiers and for empty ranges.
    """
    low, high = operator.index(min), operator.index(max)
    expected = sorted((low, 32 if hint is None else operator.index(hint), high))[1]
    if not isinstance(name, str) or not name.isidentifier():
        raise ArgumentError(f"the name of a dimension is an identifier, not {name!r}")
    if not 0 <= low <= high <= LARGEST:
        raise ArgumentError(f"the sizes of dimension {name} are {low}..{high}", remedy=f"0 <= min <= max <= {LARGEST}")
    if (hint is not None and expected != hint) or not all(low <= c <= high for c in common):
        raise ArgumentError(f"hint and common sizes of dimension {name} lie in {low}..{high}")
    if low == high:
        return low
    return Size(((((Dimension(name, low, high, expected, tuple(common)), 1),), 1),))


def dimensions(sizes: Iterable[Any]) -> dict[str, Dimension]:
    """The dimensions on which sizes depend, by name. Raises ArgumentError where two have one name."""
    found: dict[str, Dimension] = {}
    for atom in (a for size in sizes for monomial, _ in terms(size) for a, _ in monomial):
        inner = dimensions((atom.operand, atom.divisor)) if isinstance(atom, Quotient) else {atom.name: atom}
        for name, dimension in inner.items():
            if found.setdefault(name, dimension) != dimension:
                raise ArgumentError(
                    f"two dimensions are named {name}, one of which is {dimension.low}..{dimension.high}, "
                    f"the other {found[name].low}..{found[name].high}",
                    remedy="one gc.Dim object for one dimension",
                )
    return found
