"""Shapes as users see them: ``Size``, a tuple with ``numel``."""

from __future__ import annotations

from math import prod
from typing import Any


class Size(tuple):
    """Shape of a tensor: a tuple whose slices and sums are Sizes again. Pickles hold a plain tuple.

    While tracing, shapes with symbolic sizes are plain tuples.
    """

    __slots__ = ()

    def numel(self) -> int:
        """Return the number of elements."""
        return prod(self)

    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        return Size(item) if type(index) is slice else item

    def __add__(self, other: Any) -> Any:
        return Size(tuple.__add__(self, other))

    def __reduce__(self) -> Any:
        return tuple, (tuple(self),)


_MOST = 4096


class _Sizes(dict[tuple[int, ...], Size]):
    def __missing__(self, shape: tuple[int, ...]) -> Size:
        if len(self) >= _MOST:
            self.clear()
        size = self[shape] = Size(shape)
        return size


SIZES = _Sizes()
"""Cache of the Size of each concrete shape, because every operation needs some; cleared when full."""


def traced_size(shape: tuple[Any, ...]) -> Any:
    """Return a shape as Size, or unchanged if an extent is symbolic."""
    return Size(shape) if all([type(extent) is int for extent in shape]) else shape
