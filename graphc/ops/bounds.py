"""Shared range rules: bounds of the elements of an integer result."""

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
    """Return the least of several range ends. Where sizes known only at run time decide which one that is, return a
    lower bound (``end`` 0) or an upper bound (1) of it."""
    if not any(map(is_size, values)):
        return min(values)
    smallest = (v for v in values if all(always("<=", v, w) for w in values))
    return next(smallest, min(size_bounds(v)[end] for v in values))


def most(values: Sequence[int], end: int = 1) -> int:
    """Return the largest, with the same meaning of ``end``."""
    if not any(map(is_size, values)):
        return max(values)
    largest = (v for v in values if all(always("<=", w, v) for w in values))
    return next(largest, max(size_bounds(v)[end] for v in values))


def of_first(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Bounds of elements of operand 0, moved, selected or converted."""
    return ranges[0]


def union(*operands: int) -> BoundsRule:
    """Return the rule for elements of the given operands, or of all operands if none are given."""

    def rule(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
        chosen = [ranges[i] for i in operands] if operands else ranges
        return least([r[0] for r in chosen]), most([r[1] for r in chosen])

    return rule


def places(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Bounds of indices along ``axis`` of operand 0."""
    return 0, most((0, types[0].shape[attrs["axis"]] - 1))


def total(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Bounds for x + y."""
    (a, b), (c, d) = ranges
    return a + c, b + d


def difference(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Bounds for x - y."""
    (a, b), (c, d) = ranges
    return a - d, b - c


def product(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Bounds for x * y."""
    products = [a * b for a in ranges[0] for b in ranges[1]]
    return least(products), most(products)


def remainder(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds | None:
    """Bounds for x mod y, which has the sign of y."""
    low, high = ranges[1]
    return (0, high - 1) if always("<=", 1, low) else None


def opposite(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Bounds for -x."""
    low, high = ranges[0]
    return -high, -low


def smaller(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Bounds for the smaller of x and y."""
    (a, b), (c, d) = ranges
    return least((a, c)), least((b, d), 1)


def larger(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Bounds for the larger of x and y."""
    (a, b), (c, d) = ranges
    return most((a, c), 0), most((b, d))


def clamped(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Bounds for x clamped to low..high."""
    x, low, high = ranges
    return least((most((x[0], low[0]), 0), high[0])), least((most((x[1], low[1])), high[1]), 1)
