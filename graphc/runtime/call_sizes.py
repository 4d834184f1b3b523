"""Shapes, bytes and table words of a call, computed from the sizes of its named dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.dtypes import BY_NAME
from graphc.base.errors import ArgumentError
from graphc.base.records import dataclass
from graphc.base.sizes.named_dims import chosen_sizes, dimensions
from graphc.base.sizes.shape_patterns import ShapePatterns, as_pattern
from graphc.base.sizes.size import Dimension, at, is_size
from graphc.files.manifest import BufferSpec, Manifest

REMEMBERED = 1024
"""Maximum number of input shapes whose call sizes are cached."""


def numpy_type(spec: BufferSpec) -> np.dtype:
    """Return numpy's one object for the element type of a buffer."""
    return BY_NAME[spec.dtype].numpy


def table_slots(manifest: Manifest) -> dict[str, int]:
    """Return the table word that holds the address of each buffer, by buffer name. The words of the dimensions follow
    the arena."""
    slots: dict[str, int] = {}
    after = 0
    for number, spec in enumerate(manifest.buffers):
        slots[spec.name] = number + after
        after = len(manifest.dims) if spec.cls == "arena" else after
    return slots


def _solvable(
    shapes: Sequence[Sequence[Any]], titles: Sequence[str], dims: Sequence[Dimension]
) -> ShapePatterns | None:
    """Return the input shapes as patterns from which the sizes of all dimensions follow; None if they do not."""
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
    """(word of the table, element type, shape, buffer) of each input."""
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
        """Sizes of every call, for a program without named dimensions."""
        shapes = [spec.pattern for spec in self._inputs]
        self.patterns = _solvable(shapes, [f"input {s.name!r}" for s in self._inputs], manifest.dims)
        """Patterns of the input shapes, if the sizes of the named dimensions follow from them."""
        self.are_given = self.patterns is None and bool(manifest.dims)
        """Whether each call must pass the sizes, because the shapes of its inputs do not determine all of them."""
        self.has_numbers = any(spec.equals is not None for spec in self._inputs)
        """Whether some inputs are integers that determine sizes."""
        self._cache: dict[tuple[Any, ...], CallSizes] = {}

    def of_inputs(self, inputs: Sequence[Any]) -> CallSizes:
        """Return the sizes of a call on these inputs; raises ShapeError where the inputs do not fit."""
        if self.has_numbers:
            pairs = zip(inputs, self._inputs, strict=True)
            return self.of_shapes(tuple([as_pattern(x, s.pattern) for x, s in pairs]))
        return self.of_shapes(tuple([np.shape(array) for array in inputs]))

    def of_shapes(self, shapes: tuple[tuple[int, ...], ...]) -> CallSizes:
        """Return the sizes of a call on inputs of these shapes; an integer input counts as its value. Raises ShapeError
        where the shapes do not fit, and ArgumentError where they do not determine the sizes of all dimensions."""
        sizes = self._cache.get(shapes)
        if sizes is None:
            if self.patterns is None:
                names = ", ".join(d.name for d in self.manifest.dims)
                raise ArgumentError(f"the input shapes of {self.manifest.name} do not determine {names}")
            sizes = self._cached(shapes, self.patterns.solve(shapes))
        return sizes

    def of_values(self, sizes: Mapping[str, int]) -> CallSizes:
        """Return the sizes of a call in which the dimensions have these sizes; other names are ignored."""
        dims = self.manifest.dims
        key = tuple([sizes[d.name] for d in dims])
        return self._cache.get(key) or self._cached(key, dict(zip(dims, key, strict=True)))

    def _cached(self, key: tuple[Any, ...], values: Mapping[Dimension, int]) -> CallSizes:
        if len(self._cache) >= REMEMBERED:
            self._cache.clear()
        sizes = self._cache[key] = self._sizes(values)
        return sizes

    def named(self, shapes: tuple[tuple[int, ...], ...]) -> dict[str, int]:
        """Return the sizes of the dimensions by name, for inputs of these shapes. Raises as ``of_shapes`` does."""
        sizes = self.of_shapes(shapes).words
        return {d.name: size for d, (_, size) in zip(self.manifest.dims, sizes, strict=True)}

    def of_dimensions(self, sizes: Mapping[str, int]) -> CallSizes:
        """Return the sizes of a call with these sizes of dimensions; unnamed dimensions get their expected sizes.
        Raises ArgumentError for an unknown name, and for a size outside of its range."""
        dims = {d.name: d for d in self.manifest.dims}
        chosen_sizes(dims, sizes)
        return self._sizes({d: sizes.get(d.name, d.hint) for d in self.manifest.dims})

    def _sizes(self, values: Mapping[Dimension, int]) -> CallSizes:
        first = self._slots[self.manifest.of_class("arena")[0].name] + 1 if self.manifest.dims else 0
        outputs = self._layouts(self._outputs, values)
        return CallSizes(
            self._layouts(self._inputs, values),
            outputs,
            tuple((*layout, spec.nbytes) for *layout, spec in outputs),
            at(self.manifest.arena, values),
            tuple((first + i, values[d]) for i, d in enumerate(self.manifest.dims)),
        )

    def _layouts(self, specs: Sequence[BufferSpec], values: Mapping[Dimension, int]) -> tuple[Any, ...]:
        buffers = []
        for spec in specs:
            if any(map(is_size, spec.shape)):
                spec = spec.of_shape(tuple([at(extent, values) for extent in spec.shape]))
            elif spec.equals is not None and values:
                spec = replace(spec, equals=at(spec.equals, values))
            buffers.append((self._slots[spec.name], numpy_type(spec), spec.shape, spec))
        return tuple(buffers)
