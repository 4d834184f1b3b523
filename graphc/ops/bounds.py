"""Range rules that op families share: what the elements of an integer result lie within."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.base.sizes.size import always, is_size
from graphc.base.sizes.size import bounds as size_bounds
from graphc.ir.op import Attrs, Bounds
from graphc.ir.types import TensorType

Ranges = Sequence[Bounds]
Types = tuple[TensorType, ...]
BoundsRule = Callable[[Ranges, Types, Attrs], Bounds | None]


def least(values: Sequence[int], end: int = 0) -> int:
    """The least of some ends of ranges; where sizes known at run time decide which one it is, a number that is not
    more (``end`` 0) or not less (1)."""
    if not any(map(is_size, values)):
        return min(values)
    found = (v for v in values if all(always("<=", v, w) for w in values))
    return next(found, min(size_bounds(v)[end] for v in values))


def most(values: Sequence[int], end: int = 1) -> int:
    """The same for the largest."""
    if not any(map(is_size, values)):
        return max(values)
    found = (v for v in values if all(always("<=", w, v) for w in values))
    return next(found, max(size_bounds(v)[end] for v in values))


def of_first(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Of elements of operand 0, moved, selected or converted."""
    return ranges[0]


def union(*operands: int) -> BoundsRule:
    """Of elements of the given operands; of all, where none are given."""

    def rule(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
        chosen = [ranges[i] for i in operands] if operands else ranges
        return least([r[0] for r in chosen]), most([r[1] for r in chosen])

    return rule


def places(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Of positions along ``axis`` of operand 0."""
    return 0, most((0, types[0].shape[attrs["axis"]] - 1))


def total(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Of x + y."""
    (a, b), (c, d) = ranges
    return a + c, b + d


def difference(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Of x - y."""
    (a, b), (c, d) = ranges
    return a - d, b - c


def product(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Of x * y."""
    products = [a * b for a in ranges[0] for b in ranges[1]]
    return least(products), most(products)


def remainder(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds | None:
    """Of x mod y, which has the sign of y."""
    low, high = ranges[1]
    return (0, high - 1) if always("<=", 1, low) else None


def opposite(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Of -x."""
    low, high = ranges[0]
    return -high, -low


def smaller(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Of the smaller of x and y."""
    (a, b), (c, d) = ranges
    return least((a, c)), least((b, d), 1)


def larger(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Of the larger of x and y."""
    (a, b), (c, d) = ranges
    return most((a, c), 0), most((b, d))


def clamped(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Of x brought between low and high."""
    x, low, high = ranges
    return least((most((x[0], low[0]), 0), high[0])), least((most((x[1], low[1])), high[1]), 1)
