"""What a call takes once the sizes of named dimensions are known: shapes, bytes, words of its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphc.base.dtypes import BY_NAME
from graphc.base.errors import ArgumentError
from graphc.base.sizes.named_dims import chosen_sizes, dimensions
from graphc.base.sizes.shape_patterns import ShapePatterns, as_pattern
from graphc.base.sizes.size import Dimension, at, is_size
from graphc.files.manifest import BufferSpec, Manifest

REMEMBERED = 1024
"""Of so many different shapes of inputs it is remembered what their calls take."""


def numpy_type(spec: BufferSpec) -> np.dtype:
    """numpy's one object for the element type of a buffer."""
    return BY_NAME[spec.dtype].numpy


def table_slots(manifest: Manifest) -> dict[str, int]:
    """By name of each buffer the word of the table that holds its address; those of the dimensions follow the arena."""
    slots: dict[str, int] = {}
    after = 0
    for number, spec in enumerate(manifest.buffers):
        slots[spec.name] = number + after
        after = len(manifest.dims) if spec.cls == "arena" else after
    return slots


def _solvable(
    shapes: Sequence[Sequence[Any]], titles: Sequence[str], dims: Sequence[Dimension]
) -> ShapePatterns | None:
    """The shapes of inputs as patterns that tell the sizes of all dimensions; None where they do not."""
    if not {d.name for d in dims} <= dimensions(n for s in shapes for n in s).keys():
        return None
    try:
        return ShapePatterns(shapes, titles) if dims else None
    except ArgumentError:
        return None


@dataclass(frozen=True, eq=False)
class CallSizes:
    """The sizes of one call, or of all calls of a program without named dimensions."""

    inputs: tuple[tuple[int, np.dtype, tuple[int, ...], BufferSpec], ...]
    """(word of the table, element type, shape, what it is) of each input."""
    outputs: tuple[tuple[int, np.dtype, tuple[int, ...], BufferSpec], ...]
    results: tuple[tuple[int, np.dtype, tuple[int, ...], int], ...]
    """(word of the table, element type, shape, bytes) of each output."""
    arena: int
    words: tuple[tuple[int, int], ...] = ()
    """(word of the table, size) of each dimension."""


class SizesOfCalls:
    """The sizes of the calls of one program."""

    def __init__(self, manifest: Manifest):
        self.manifest = manifest
        self._slots = table_slots(manifest)
        self._inputs, self._outputs = manifest.of_class("input"), manifest.of_class("output")
        self.fixed = None if manifest.dims else self._sizes({})
        """Those of all calls, where there are no named dimensions."""
        shapes = [spec.pattern for spec in self._inputs]
        self.patterns = _solvable(shapes, [f"input {s.name!r}" for s in self._inputs], manifest.dims)
        """Those of the inputs, where they tell the sizes of named dimensions."""
        self.are_given = self.patterns is None and bool(manifest.dims)
        """Whether each call must say the sizes, for the shapes of its inputs do not tell all of them."""
        self.has_numbers = any(spec.equals is not None for spec in self._inputs)
        """Whether inputs that are numbers give sizes."""
        self._known: dict[tuple[Any, ...], CallSizes] = {}

    def of_inputs(self, inputs: Sequence[Any]) -> CallSizes:
        """The sizes of a call on these inputs; raises ShapeError where they do not fit."""
        if self.has_numbers:
            pairs = zip(inputs, self._inputs, strict=True)
            return self.of_shapes(tuple([as_pattern(x, s.pattern) for x, s in pairs]))
        return self.of_shapes(tuple([np.shape(array) for array in inputs]))

    def of_shapes(self, shapes: tuple[tuple[int, ...], ...]) -> CallSizes:
        """The sizes of a call on inputs of these shapes, of numbers themselves in their place; raises ShapeError where
        they do not fit, and ArgumentError where they do not tell the sizes of all dimensions."""
        found = self._known.get(shapes)
        if found is None:
            if self.patterns is None:
                known = ", ".join(d.name for d in self.manifest.dims)
                raise ArgumentError(f"no sizes of the inputs of {self.manifest.name} tell what {known} are")
            found = self._remembered(shapes, self.patterns.solve(shapes))
        return found

    def of_values(self, sizes: Mapping[str, int]) -> CallSizes:
        """The sizes of a call in which dimensions have these sizes, which may name others, too."""
        dims = self.manifest.dims
        key = tuple([sizes[d.name] for d in dims])
        return self._known.get(key) or self._remembered(key, dict(zip(dims, key, strict=True)))

    def _remembered(self, key: tuple[Any, ...], values: Mapping[Dimension, int]) -> CallSizes:
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        found = self._known[key] = self._sizes(values)
        return found

    def named(self, shapes: tuple[tuple[int, ...], ...]) -> dict[str, int]:
        """The sizes of the dimensions in a call on inputs of these shapes, by name; raises ShapeError as above."""
        sizes = self.of_shapes(shapes).words
        return {d.name: size for d, (_, size) in zip(self.manifest.dims, sizes, strict=True)}

    def of_dimensions(self, sizes: Mapping[str, int]) -> CallSizes:
        """The sizes of a call in which dimensions have these sizes, those not named their expected ones. Raises
        ArgumentError for an unknown name, and for a size outside of its range."""
        known = {d.name: d for d in self.manifest.dims}
        chosen_sizes(known, sizes)
        return self._sizes({d: sizes.get(d.name, d.hint) for d in self.manifest.dims})

    def _sizes(self, values: Mapping[Dimension, int]) -> CallSizes:
        first = self._slots[self.manifest.of_class("arena")[0].name] + 1 if self.manifest.dims else 0
        outputs = self._places(self._outputs, values)
        return CallSizes(
            self._places(self._inputs, values),
            outputs,
            tuple((*place, spec.nbytes) for *place, spec in outputs),
            at(self.manifest.arena, values),
            tuple((first + i, values[d]) for i, d in enumerate(self.manifest.dims)),
        )

    def _places(self, specs: Sequence[BufferSpec], values: Mapping[Dimension, int]) -> tuple[Any, ...]:
        found = []
        for spec in specs:
            if any(map(is_size, spec.shape)):
                spec = spec.of_shape(tuple([at(extent, values) for extent in spec.shape]))
            elif spec.equals is not None and values:
                spec = replace(spec, equals=at(spec.equals, values))
            found.append((self._slots[spec.name], numpy_type(spec), spec.shape, spec))
        return tuple(found)
