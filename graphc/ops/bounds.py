"""Range rules that op families share: what the elements of an integer result lie within."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.ir.op import Attrs, Bounds
from graphc.ir.types import TensorType

Ranges = Sequence[Bounds]
Types = tuple[TensorType, ...]
BoundsRule = Callable[[Ranges, Types, Attrs], Bounds | None]


def of_first(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Of elements of operand 0, moved, selected or converted."""
    return ranges[0]


def union(*operands: int) -> BoundsRule:
    """Of elements of the given operands; of all, where none are given."""

    def rule(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
        chosen = [ranges[i] for i in operands] if operands else ranges
        return min(r[0] for r in chosen), max(r[1] for r in chosen)

    return rule


def places(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Of positions along ``axis`` of operand 0."""
    return 0, max(0, types[0].shape[attrs["axis"]] - 1)


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
    return min(products), max(products)


def remainder(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds | None:
    """Of x mod y, which has the sign of y."""
    low, high = ranges[1]
    return (0, high - 1) if low > 0 else None


def opposite(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Of -x."""
    low, high = ranges[0]
    return -high, -low


def smaller(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Of the smaller of x and y."""
    (a, b), (c, d) = ranges
    return min(a, c), min(b, d)


def larger(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Of the larger of x and y."""
    (a, b), (c, d) = ranges
    return max(a, c), max(b, d)


def clamped(ranges: Ranges, types: Types, attrs: Attrs) -> Bounds:
    """Of x brought between low and high."""
    x, low, high = ranges
    return min(max(x[0], low[0]), high[0]), min(max(x[1], low[1]), high[1])
