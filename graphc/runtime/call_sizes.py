"""What a call takes once the sizes of named dimensions are known: shapes, bytes, words of its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphc.base.dtypes import BY_NAME
from graphc.base.named_dims import chosen_sizes
from graphc.base.shape_patterns import ShapePatterns, as_pattern
from graphc.base.size import Dimension, at
from graphc.files.manifest import BufferSpec, Manifest

REMEMBERED = 256
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
        """Raises ArgumentError when the shapes of the inputs do not tell the sizes of all dimensions."""
        self.manifest = manifest
        self._slots = table_slots(manifest)
        self._inputs, self._outputs = manifest.of_class("input"), manifest.of_class("output")
        self.fixed = None if manifest.dims else self._sizes({})
        """Those of all calls, where there are no named dimensions."""
        shapes = [spec.pattern for spec in self._inputs]
        self._patterns = ShapePatterns(shapes, [f"input {s.name!r}" for s in self._inputs]) if manifest.dims else None
        self.has_numbers = any(spec.equals is not None for spec in self._inputs)
        """Whether inputs that are numbers give sizes."""
        self._known: dict[tuple[tuple[int, ...], ...], CallSizes] = {}

    def of_inputs(self, inputs: Sequence[Any]) -> CallSizes:
        """The sizes of a call on these inputs; raises ShapeError where they do not fit."""
        if self.has_numbers:
            pairs = zip(inputs, self._inputs, strict=True)
            return self.of_shapes(tuple([as_pattern(x, s.pattern) for x, s in pairs]))
        return self.of_shapes(tuple([np.shape(array) for array in inputs]))

    def of_shapes(self, shapes: tuple[tuple[int, ...], ...]) -> CallSizes:
        """The sizes of a call on inputs of these shapes, of numbers themselves in their place; raises ShapeError where
        they do not fit."""
        found = self._known.get(shapes)
        if found is None:
            assert self._patterns is not None
            found = self._sizes(self._patterns.solve(shapes))
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[shapes] = found
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
            shape = tuple([at(extent, values) for extent in spec.shape])
            if values:
                spec = replace(spec, shape=shape)
            found.append((self._slots[spec.name], numpy_type(spec), shape, spec))
        return tuple(found)
