"""Shapes with named dimensions: which sizes these have in a call, and whether the shapes of the call fit."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArgumentError, GraphcError, ShapeError
from graphc.base.sizes.named_dims import dimensions, size_of
from graphc.base.sizes.size import Dimension, at, is_size, terms


class Number(tuple[Any, ...]):
    """What stands in the place of the shape of an argument that is a whole number: that alone, or the size that it is
    in each call."""

    __slots__ = ()


def as_pattern(argument: Any, pattern: Sequence[Any]) -> tuple[int, ...]:
    """The shape of an argument of a call, or where the pattern is that of a number the number itself; raises
    ArgumentError for one that is not whole."""
    if type(pattern) is not Number:
        return np.shape(argument)
    try:
        if not isinstance(argument, bool):
            return (argument if is_size(argument) else operator.index(argument),)
    except TypeError:
        pass
    shown = f"{type(argument).__name__} {argument!r}"
    raise ArgumentError(f"{pattern[0]} is a whole number, not {shown[:200]}", remedy="int(...)")


class _Entry(NamedTuple):
    """One size of one shape."""

    tensor: int
    dim: int
    size: Any


class _Unknown(NamedTuple):
    """An entry that gives a dimension: ``factor * dimension + rest``."""

    entry: _Entry
    dimension: Dimension
    factor: int
    rest: Any


class ShapePatterns:
    """The shapes of the tensors that a call gives, some sizes of which depend on named dimensions, and its numbers.

    A dimension is solved from the first size that is ``a * dimension + b`` with other dimensions known before; a size
    that is the dimension itself goes first. All other sizes are checked. Raises ArgumentError where two dimensions
    have one name, and where a dimension follows from no size.
    """

    def __init__(self, shapes: Sequence[Sequence[Any]], titles: Sequence[str]):
        """``titles`` are what messages call the tensors."""
        self.shapes = [shape if type(shape) is Number else tuple(shape) for shape in shapes]
        self.titles = tuple(titles)
        self.numbers = tuple([i for i, shape in enumerate(self.shapes) if type(shape) is Number])
        """Which arguments are numbers."""
        entries = [_Entry(i, d, s) for i, shape in enumerate(self.shapes) for d, s in enumerate(shape) if is_size(s)]
        self.dimensions = dimensions(e.size for e in entries)
        """By name."""
        self.steps, self._checks = _ordered(entries, set(self.dimensions.values()))
        """How each dimension follows, in order: (entry, dimension, factor, rest) of ``factor * dimension + rest``."""
        self._checks += [
            _Entry(i, d, s) for i, shape in enumerate(self.shapes) for d, s in enumerate(shape) if not is_size(s)
        ]

    def solve(self, shapes: Sequence[Sequence[int]]) -> dict[Dimension, int]:
        """The sizes of the dimensions; raises ShapeError where the shapes do not fit, or a size is out of its range,
        and ArgumentError where that is so of a number."""
        self._check_ranks(shapes)
        sizes: dict[Dimension, int] = {}
        for (tensor, dim, size), dimension, factor, rest in self.steps:
            given = shapes[tensor][dim]
            found, left = divmod(given - at(rest, sizes), factor)
            if left:
                raise self._fault(tensor)(
                    f"{self._place(tensor, dim)} is {given}, and no {dimension} gives {size} = {given}"
                )
            if not dimension.low <= found <= dimension.high:
                given = str(found) if found == given else f"{found} ({size} = {given})"
                raise self._fault(tensor)(
                    f"{dimension} is {given}, outside of {dimension.low}..{dimension.high} "
                    f"({self._place(tensor, dim)})",
                    remedy=f"Dim({dimension.name!r}, min=..., max=...) with another range",
                )
            sizes[dimension] = found
        for tensor, dim, size in self._checks:
            given, wanted = shapes[tensor][dim], at(size, sizes)
            if given != wanted:
                raise self._fault(tensor)(
                    f"{self._place(tensor, dim)} is {given}, not {self._explained(size, wanted, sizes)}"
                )
        return sizes

    def _fault(self, tensor: int) -> type[GraphcError]:
        """Of what kind it is that an argument does not fit."""
        return ArgumentError if tensor in self.numbers else ShapeError

    def _place(self, tensor: int, dim: int) -> str:
        """What messages call a size."""
        title = self.titles[tensor]
        return f"the number {title}" if tensor in self.numbers else f"dimension {dim} of {title}"

    def _check_ranks(self, shapes: Sequence[Sequence[int]]) -> None:
        for title, shape, wanted in zip(self.titles, shapes, self.shapes, strict=True):
            if len(shape) != len(wanted):
                raise ShapeError(f"{title} has {len(shape)} dimensions, not {len(wanted)}: [{_listed(wanted)}]")

    def _explained(self, size: Any, value: int, sizes: Mapping[Dimension, int]) -> str:
        """``4 (time, as dimension 1 of x)``."""
        if not is_size(size):
            return str(value)
        known = dimensions((size,)).values()
        found = [f"{e.size} is {self._place(e.tensor, e.dim)}" for e, d, *_ in self.steps if d in known]
        return f"{value} = {size} ({', '.join(found)})"


def _listed(shape: Sequence[Any]) -> str:
    return ",".join(map(str, shape))


def _ordered(entries: list[_Entry], wanted: set[Dimension]) -> tuple[list[_Unknown], list[_Entry]]:
    """The entries that give dimensions, in an order in which each needs what is known then, and those to check."""
    known: set[Dimension] = set()
    steps: list[_Unknown] = []
    rest = sorted(entries, key=lambda e: len(terms(e.size)) + (terms(e.size)[0][1] != 1))
    while known != wanted:
        found = next((step for e in rest if (step := _solvable(e, known))), None)
        if found is None:
            missing = ", ".join(sorted(d.name for d in wanted - known))
            raise ArgumentError(
                f"no size of the arguments tells what {missing} is",
                remedy="a dimension that is named by itself, or as 16 * dim, for some argument",
            )
        steps.append(found)
        known.add(found.dimension)
        rest.remove(found.entry)
    return steps, rest


def _solvable(entry: _Entry, known: set[Dimension]) -> _Unknown | None:
    """How an entry gives the one dimension of it that is not known; None where it does not."""
    unknown = [d for d in dimensions((entry.size,)).values() if d not in known]
    if len(unknown) != 1:
        return None
    (dimension,) = unknown
    factor = dict(terms(entry.size)).get(((dimension, 1),), 0)
    rest = entry.size - size_of(dimension) * factor
    inside = dimension in dimensions((rest,)).values()
    return None if factor <= 0 or inside else _Unknown(entry, dimension, factor, rest)
