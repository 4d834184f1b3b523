"""Shape patterns: shapes with named dimensions, solved for the sizes of a call and checked against its shapes."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, GraphcError, ShapeError
from graphc.base.records import NamedTuple
from graphc.base.sizes.named_dims import dimensions, size_of
from graphc.base.sizes.size import Dimension, at, is_size, terms


class Number(tuple[Any, ...]):
    """Pattern of an integer argument: a tuple of its value, or of its symbolic size."""

    __slots__ = ()


def as_pattern(argument: Any, pattern: Sequence[Any]) -> tuple[int, ...]:
    """Return the shape of an argument, or the number itself if the pattern is a Number; raises ArgumentError if it is
    not an integer."""
    if type(pattern) is not Number:
        return np.shape(argument)
    try:
        if not isinstance(argument, bool):
            return (argument if is_size(argument) else operator.index(argument),)
    except TypeError:
        pass
    shown = f"{type(argument).__name__} {argument!r}"
    raise ArgumentError(f"{pattern[0]} is a whole number, not {shown[:200]}", remedy="convert it: int(...)")


class _DimSize(NamedTuple):
    """Size of one dimension of one argument."""

    tensor: int
    dim: int
    size: Any


class _Equation(NamedTuple):
    """Entry that determines a dimension: its size is ``factor * dimension + rest``."""

    entry: _DimSize
    dimension: Dimension
    factor: int
    rest: Any


class ShapePatterns:
    """Shapes of the tensors of a call, some sizes of which depend on named dimensions, and its integers.

    Each dimension is solved from a size ``a * dimension + b`` whose other dimensions are solved before; sizes that are
    the dimension itself come first. All other sizes are checked. Raises ArgumentError if two dimensions have the same
    name, or no size determines a dimension.
    """

    def __init__(self, shapes: Sequence[Sequence[Any]], titles: Sequence[str]):
        """``titles`` name the arguments in messages."""
        self.shapes = [shape if type(shape) is Number else tuple(shape) for shape in shapes]
        self.titles = tuple(titles)
        self.numbers = tuple([i for i, shape in enumerate(self.shapes) if type(shape) is Number])
        """Indices of the arguments that are integers."""
        entries = [_DimSize(i, d, s) for i, shape in enumerate(self.shapes) for d, s in enumerate(shape) if is_size(s)]
        self.dimensions = dimensions(e.size for e in entries)
        """Dimensions by name."""
        self.steps, self._checks = _ordered(entries, set(self.dimensions.values()))
        """Equations that determine the dimensions, in the order of solution."""
        self._checks += [
            _DimSize(i, d, s) for i, shape in enumerate(self.shapes) for d, s in enumerate(shape) if not is_size(s)
        ]

    def solve(self, shapes: Sequence[Sequence[int]]) -> dict[Dimension, int]:
        """Return the sizes of the dimensions. Raises ShapeError if shapes do not match or a size is out of range;
        ArgumentError for integers."""
        self._check_ranks(shapes)
        sizes: dict[Dimension, int] = {}
        for (tensor, dim, size), dimension, factor, rest in self.steps:
            actual = shapes[tensor][dim]
            value, remainder = divmod(actual - at(rest, sizes), factor)
            if remainder:
                raise self._fault(tensor)(
                    f"{self._format_entry(tensor, dim)} is {actual}, and no {dimension} gives {size} = {actual}"
                )
            if not dimension.low <= value <= dimension.high:
                shown = str(value) if value == actual else f"{value} ({size} = {actual})"
                raise self._fault(tensor)(
                    f"{dimension} is {shown}, outside of {dimension.low}..{dimension.high} "
                    f"({self._format_entry(tensor, dim)})",
                    remedy=f"declare Dim({dimension.name!r}, min=..., max=...) with another range",
                )
            sizes[dimension] = value
        for tensor, dim, size in self._checks:
            actual, expected = shapes[tensor][dim], at(size, sizes)
            if actual != expected:
                raise self._fault(tensor)(
                    f"{self._format_entry(tensor, dim)} is {actual}, not {self._explained(size, expected, sizes)}"
                )
        return sizes

    def hinted(self, sizes: Mapping[Dimension, int]) -> ShapePatterns:
        """Return the patterns with sizes of the dimensions as their hints."""
        values: dict[Dimension, Any] = {d: size_of(replace(d, hint=n)) for d, n in sizes.items()}
        return ShapePatterns([type(s)([at(n, values) for n in s]) for s in self.shapes], self.titles)

    def sizes_of_call(
        self, arguments: Sequence[Any], assumptions: Iterable[Any], title: str, remedy: str | None = None
    ) -> dict[Dimension, int]:
        """Return the sizes in a call of what ``title`` names, traced under these assumptions.

        Raises what ``solve`` raises, and ShapeError for a broken assumption.
        """
        sizes = self.solve([as_pattern(x, shape) for x, shape in zip(arguments, self.shapes, strict=True)])
        broken = next((a for a in assumptions if not a.holds(sizes)), None)
        if broken is not None:
            actual = ", ".join(f"{d.name} = {n}" for d, n in sizes.items())
            raise ShapeError(f"{title} was traced for {broken}, but was called with {actual}", remedy=remedy)
        return sizes

    def _fault(self, tensor: int) -> type[GraphcError]:
        """Return the class of error for a mismatch of an argument."""
        return ArgumentError if tensor in self.numbers else ShapeError

    def _format_entry(self, tensor: int, dim: int) -> str:
        """Format the dimension of an argument for messages."""
        title = self.titles[tensor]
        return f"the number {title}" if tensor in self.numbers else f"dimension {dim} of {title}"

    def _check_ranks(self, shapes: Sequence[Sequence[int]]) -> None:
        for title, shape, pattern in zip(self.titles, shapes, self.shapes, strict=True):
            if len(shape) != len(pattern):
                raise ShapeError(f"{title} has {len(shape)} dimensions, not {len(pattern)}: [{_listed(pattern)}]")

    def _explained(self, size: Any, value: int, sizes: Mapping[Dimension, int]) -> str:
        """``4 (time, as dimension 1 of x)``."""
        if not is_size(size):
            return str(value)
        used = dimensions((size,)).values()
        origins = [f"{e.size} is {self._format_entry(e.tensor, e.dim)}" for e, d, *_ in self.steps if d in used]
        return f"{value} = {size} ({', '.join(origins)})"


def _listed(shape: Sequence[Any]) -> str:
    return ",".join(map(str, shape))


def _ordered(entries: list[_DimSize], targets: set[Dimension]) -> tuple[list[_Equation], list[_DimSize]]:
    """Return equations for all dimensions in the order of solution, and the remaining entries to check."""
    solved: set[Dimension] = set()
    steps: list[_Equation] = []
    rest = sorted(entries, key=lambda e: len(terms(e.size)) + (terms(e.size)[0][1] != 1))
    while solved != targets:
        equation = next((step for e in rest if (step := _solvable(e, solved))), None)
        if equation is None:
            missing = ", ".join(sorted(d.name for d in targets - solved))
            raise ArgumentError(
                f"no size of the arguments tells what {missing} is",
                remedy="declare some argument with the dimension itself, or 16 * dim, as a size",
            )
        steps.append(equation)
        solved.add(equation.dimension)
        rest.remove(equation.entry)
    return steps, rest


def _solvable(entry: _DimSize, solved: set[Dimension]) -> _Equation | None:
    """Return the equation of an entry for its only unsolved dimension; None if it determines none."""
    unknown = [d for d in dimensions((entry.size,)).values() if d not in solved]
    if len(unknown) != 1:
        return None
    (dimension,) = unknown
    factor = dict(terms(entry.size)).get(((dimension, 1),), 0)
    rest = entry.size - size_of(dimension) * factor
    inside = dimension in dimensions((rest,)).values()
    return None if factor <= 0 or inside else _Equation(entry, dimension, factor, rest)
