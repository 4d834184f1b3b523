"""Shapes of tensors as users ask for them: tuples that also know how many elements they stand for."""

from __future__ import annotations

from math import prod
from typing import Any


class Size(tuple):
    """The extents of a tensor's dimensions: a tuple, and a part of one is a Size again. Pickles hold a tuple.

    In a trace, shapes with sizes that calls decide are plain tuples."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements."""
        return prod(self)

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return Size(found) if type(index) is slice else found

    def __add__(self, other: Any) -> Any:
        return Size(tuple.__add__(self, other))

    def __reduce__(self) -> Any:
        return tuple, (tuple(self),)


_MOST = 4096


class _Sizes(dict[tuple[int, ...], Size]):
    def __missing__(self, shape: tuple[int, ...]) -> Size:
        if len(self) >= _MOST:
            self.clear()
        found = self[shape] = Size(shape)
        return found


SIZES = _Sizes()
"""By shapes whose extents are numbers their Sizes, since each operation asks for some; emptied where there are too
many."""


def traced_size(shape: tuple[Any, ...]) -> Any:
    """The Size of a shape, or the shape where an extent is no number."""
    return Size(shape) if all([type(extent) is int for extent in shape]) else shape
