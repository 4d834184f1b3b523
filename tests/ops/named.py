"""Applications of ops to named dimensions, derived from the samples of their definitions.

A naming replaces entries of the shapes of operands, and entries of attributes, that have one number by a dimension. It
is of use where the op can be applied for every size in the range of the dimension; what that gives with numbers is
what the application with the dimension is compared with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from graphc.base.dtypes import dtype_of
from graphc.base.errors import GraphcError
from graphc.base.sizes.named_dims import Dim
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph
from graphc.ir.op import OpDef, Sample, Trait
from graphc.ir.types import TensorType

SPAN = 4
"""How far sizes go beyond that of the sample."""
_NO_SIZES = (
    "axis",
    "axes",
    "permutation",
    "groups",
    "what",
    "stride",
    "padding",
    "dilation",
    "tile",
    "spare",
    "n",
    "stream",
    "count",
    "steps",
)
"""Attributes that name dimensions, and those of windows that are never sizes."""
_MOST_ATTRS = 4
"""Attributes with more entries of one number are replaced all at once only."""
_LARGEST = 40
"""Larger numbers are not replaced: every size up to them is tried."""
Place = tuple[Any, ...]
"""Where an entry stands: ("x", operand, dimension) in a shape, (name, place in it ...) in an attribute."""


@dataclass(frozen=True)
class Naming:
    """Entries of a sample that are equal to a dimension or to a multiple of it."""

    op: OpDef
    sample: Sample
    size: int
    """What the dimension is in the sample."""
    places: Mapping[Place, int] = field(hash=False)
    """The entries, each with its factor."""
    low: int = 1

    @property
    def dimension(self) -> Any:
        """The size that stands there."""
        return Dim("n", self.low, self.size + SPAN, self.size)

    def operands(self, size: Any) -> list[TensorType]:
        """The types of the operands for a size."""
        return [
            TensorType(dtype_of(a.dtype), tuple(self._entry(("x", i, d), n, size) for d, n in enumerate(a.shape)))
            for i, a in enumerate(self.sample.operands)
        ]

    def attrs(self, size: Any) -> dict[str, Any]:
        """The attributes for a size."""
        return {name: self._attr((name,), value, size) for name, value in self.op.normalize(self.sample.attrs).items()}

    def _attr(self, place: Place, value: Any, size: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self._attr((*place, i), v, size) for i, v in enumerate(value))
        if isinstance(value, Graph):
            return value
        return self._entry(place, value, size)

    def _entry(self, place: Place, value: Any, size: Any) -> Any:
        return self.places[place] * size if place in self.places else value

    def graph(self, size: Any) -> Graph:
        """The application to arguments of a graph."""
        graph = Graph(self.op.name)
        for i, type in enumerate(self.operands(size)):
            name = self.op.operands[min(i, len(self.op.operands) - 1)].lstrip("*")
            written = i == 0 and self.op.has(Trait.STATE_WRITE)
            graph.add_input(type, name, *(("state", "the.state") if written else ()))
        graph.set_outputs(emit(graph, self.op, graph.inputs, self.attrs(size)))
        return graph

    def arrays(self, size: int) -> list[np.ndarray]:
        """Operands of that size with the elements of the sample's, repeated."""
        types = self.operands(size)
        return [_resized(a, t.shape) for a, t in zip(self.sample.operands, types, strict=True)]

    @property
    def sizes(self) -> list[int]:
        """Return sizes to compare: the least one, its neighbour, the sample's, and more."""
        return sorted({self.low, self.low + 1, self.size, self.size + SPAN - 1})

    def __str__(self) -> str:
        shown = ", ".join(f"{'.'.join(map(str, p))}={f if f > 1 else ''}n" for p, f in self.places.items())
        return f"{self.op.name}: {shown} (n={self.size}, from {self.low})"


def _resized(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if array.shape == shape:
        return array
    return np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)


def every_naming(op: OpDef) -> list[Naming]:
    """Return the namings of all samples of an op. Samples that differ in numbers or element types only count once."""
    results: dict[Any, Naming] = {}
    for sample in op.samples() if op.samples else ():
        for naming in namings(op, sample):
            shapes = tuple(a.shape for a in sample.operands)
            plain = {name: str(v) for name, v in sample.attrs.items() if name != "dtype"}
            results.setdefault((shapes, tuple(sorted(plain.items())), tuple(naming.places.items())), naming)
    return list(results.values())


def namings(op: OpDef, sample: Sample) -> Iterator[Naming]:
    """The ways in which a size of the sample can be a dimension: all of one number, and each by itself."""
    shapes = {("x", i, d): n for i, a in enumerate(sample.operands) for d, n in enumerate(a.shape)}
    normal = op.normalize(sample.attrs)
    entries = {place: n for name, v in normal.items() if name not in _NO_SIZES for place, n in _ints((name,), v)}
    for number in sorted({n for n in (*shapes.values(), *entries.values()) if n > 1}):
        if number > _LARGEST:
            continue
        where = [p for p, n in shapes.items() if n == number]
        chosen = [tuple(where), *((p,) for p in where if len(where) > 1), ()]
        for places in dict.fromkeys(chosen):
            yield from _with_attrs(op, sample, number, places, entries)


def _with_attrs(
    op: OpDef, sample: Sample, number: int, places: tuple[Place, ...], entries: dict[Place, int]
) -> Iterator[Naming]:
    """The naming with the fewest attributes that can be applied for some range."""
    fitting = [p for p, n in entries.items() if n and n % number == 0]
    counts = range(len(fitting) + 1) if len(fitting) <= _MOST_ATTRS else (0, len(fitting))
    for count in counts:
        for attrs in combinations(fitting, count):
            if not places and not attrs:
                continue
            factors = {p: 1 for p in places} | {p: entries[p] // number for p in attrs}
            naming = Naming(op, sample, number, factors)
            low = _lowest(naming)
            if low is not None:
                yield Naming(op, sample, number, factors, low)
                return


def _lowest(naming: Naming) -> int | None:
    """The smallest size from which on the op can be applied."""
    good = [_applies(naming, size) for size in range(naming.size + SPAN + 1)]
    if not all(good[naming.size :]):
        return None
    wrong = [size for size, g in enumerate(good) if not g]
    return max(wrong[-1] + 1 if wrong else 0, 1)


def _applies(naming: Naming, size: int) -> bool:
    try:
        naming.op.result_types(tuple(naming.operands(size)), naming.op.normalize(naming.attrs(size)))
    except (GraphcError, ValueError):
        return False
    return True


def _ints(place: Place, value: Any) -> Iterator[tuple[Place, int]]:
    if isinstance(value, tuple):
        for i, v in enumerate(value):
            yield from _ints((*place, i), v)
    elif type(value) is int:
        yield place, value
