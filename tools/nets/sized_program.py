"""Random programs with named dimensions: a program, the dimensions of its arguments, and these at some sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import graphc
from tools.nets.program import Program


class Extent(NamedTuple):
    """A size of an argument: ``factor * dim + offset``, or the offset alone."""

    offset: int
    dim: str = ""
    factor: int = 0

    def at(self, sizes: Mapping[str, int]) -> int:
        """Return the value of the expression at some sizes."""
        return self.offset + (self.factor * sizes[self.dim] if self.dim else 0)

    def of(self, dims: Mapping[str, Any]) -> Any:
        """Return the size in terms of ``Dim`` objects."""
        return self.offset + (self.factor * dims[self.dim] if self.dim else 0)


class Range(NamedTuple):
    """A named dimension."""

    low: int
    high: int
    hint: int


@dataclass(frozen=True)
class SizedProgram:
    """A program whose arguments have named dimensions."""

    program: Program
    """Program with the arrays of the first sizes as inputs."""
    dims: tuple[tuple[str, Range], ...]
    shapes: tuple[tuple[Extent, ...], ...]
    """Shape of each input."""
    sizes: tuple[dict[str, int], ...]
    """The first of them are the hints."""
    arrays: tuple[tuple[np.ndarray, ...], ...]
    """Arrays of each of the sizes, for each input."""

    def at(self, number: int) -> Program:
        """Return the program with the arguments of one of the sizes."""
        inputs = [replace(i, array=a) for i, a in zip(self.program.inputs, self.arrays[number], strict=True)]
        return replace(self.program, inputs=tuple(inputs))

    def named(self) -> list[tuple[Any, ...]]:
        """Return the ``dims`` argument of ``compile``."""
        dims = {name: graphc.Dim(name, *limits) for name, limits in self.dims}
        return [tuple(e.of(dims) for e in shape) for shape in self.shapes]

    def without(self, body: tuple[str, ...], outputs: tuple[str, ...]) -> SizedProgram:
        """Return the program with fewer statements and outputs, and with the arguments and dimensions that these
        need."""
        text = " ".join((*body, *outputs))
        words = set("".join(c if c.isalnum() or c == "_" else " " for c in text).split())
        indices = [k for k, i in enumerate(self.program.inputs) if i.name in words]
        shapes = tuple(self.shapes[k] for k in indices)
        layers = tuple((name, layer) for name, layer in self.program.layers if f"self.{name}(" in text)
        inputs = tuple(self.program.inputs[k] for k in indices)
        used = {e.dim for shape in shapes for e in shape}
        return SizedProgram(
            replace(self.program, body=body, outputs=outputs, layers=layers, inputs=inputs),
            tuple((name, limits) for name, limits in self.dims if name in used),
            shapes,
            tuple({name: n for name, n in sizes.items() if name in used} for sizes in self.sizes),
            tuple(tuple(arrays[k] for k in indices) for arrays in self.arrays),
        )

    def only(self, numbers: tuple[int, ...]) -> SizedProgram:
        """Return the program with some of its sizes."""
        return replace(self, sizes=tuple(self.sizes[n] for n in numbers), arrays=tuple(self.arrays[n] for n in numbers))

    def text(self) -> str:
        """Return the text for a reader: dimensions, shapes, and the module."""
        lines = [f"# {name} = {d.low}..{d.high} hint {d.hint}" for name, d in self.dims]
        lines += [
            f"# {i.name}: {i.array.dtype.name}{[str(e) for e in shape]} {i.layout}{' with a gradient' * i.gradient}"
            for i, shape in zip(self.program.inputs, map(_shown, self.shapes), strict=True)
        ]
        return "\n".join([*lines, f"# training={self.program.training} sizes={list(self.sizes)}", self.program.text()])


def _shown(shape: tuple[Extent, ...]) -> list[str]:
    return [f"{e.factor}*{e.dim}+{e.offset}" if e.dim else str(e.offset) for e in shape]
