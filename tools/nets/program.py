"""A random program: inputs, layers, and statements as text that means the same on PyTorch and on graphc.

Its arguments may have named dimensions: then it comes with these, and with arrays at some sizes.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import graphc

NAMESPACE = {"inf": math.inf, "nan": math.nan}


@dataclass(frozen=True)
class Input:
    """An argument of a program."""

    name: str
    array: np.ndarray
    layout: str = "dense"
    """Layout in memory: ``dense``, ``transposed``, ``strided`` (every second element), ``offset`` (by one)."""
    gradient: bool = False

    def memory(self, array: np.ndarray | None = None) -> np.ndarray:
        """Return a copy of the array, or of another one of its shape, in this layout."""
        array = self.array if array is None else array
        if self.layout == "transposed":
            return np.ascontiguousarray(array.T).T
        if self.layout == "strided" and array.ndim:
            room = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
            room[..., ::2] = array
            return room[..., ::2]
        if self.layout == "offset":
            room = np.zeros(array.size + 1, array.dtype)
            room[1:] = array.ravel()
            return room[1:].reshape(array.shape)
        return array.copy()


@dataclass(frozen=True)
class Program:
    """A module with a ``forward`` of statements; ``t`` is the library, ``F`` its functional, ``nn`` its layers."""

    family: str
    inputs: tuple[Input, ...] = ()
    layers: tuple[tuple[str, str], ...] = ()
    """Attribute and expression of each layer."""
    body: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    training: bool = False
    optimizer: str = ""
    """The optimizer of a training step, such as ``SGD(params, lr=0.1)``; empty for a program without one."""

    def text(self) -> str:
        """Return the module's source."""
        lines = ["class Net(nn.Module):", "    def __init__(self):", "        super().__init__()"]
        lines += [f"        self.{name} = {layer}" for name, layer in self.layers]
        lines += ["", f"    def forward({', '.join(['self', *(i.name for i in self.inputs)])}):"]
        lines += [f"        {line}" for line in self.body]
        lines += [f"        return {', '.join(self.outputs)}{',' if len(self.outputs) == 1 else ''}"]
        return "\n".join(lines) + "\n"

    def net(self, library: Any, double: bool = False) -> Any:
        """Return the module on a library, with values of parameters and buffers that both libraries share."""
        scope = {"t": library, "nn": library.nn, "F": library.nn.functional, **NAMESPACE}
        exec(compile(self.text(), "<program>", "exec"), scope)
        net = scope["Net"]()
        if double:
            net.double()
        weights = {name: as_array(value) for name, value in net.state_dict().items()}
        state = {name: _value_of(name, array) for name, array in weights.items()}
        net.load_state_dict({name: library.from_numpy(array) for name, array in state.items()})
        return net.train(self.training)

    def tensors(self, library: Any, arrays: Any = None, gradients: bool = True) -> list[Any]:
        """Return the arguments on a library; leaves, those that want gradients require them."""
        results = []
        for i, argument in enumerate(self.inputs):
            tensor = library.from_numpy(argument.memory(None if arrays is None else arrays[i]))
            results.append(tensor.requires_grad_() if gradients and argument.gradient else tensor)
        return results

    def with_array(self, index: int, array: np.ndarray, **changes: Any) -> Program:
        """Return the program with other contents of one input."""
        inputs = list(self.inputs)
        inputs[index] = replace(inputs[index], array=array, **changes)
        return replace(self, inputs=tuple(inputs))


def as_array(value: Any) -> np.ndarray:
    """Return a copy of the values of a tensor of either library."""
    return np.array(value.detach().numpy())


def _value_of(name: str, array: np.ndarray) -> np.ndarray:
    """Return contents of a parameter or buffer: a function of its name and shape alone, tame, variances positive."""
    if array.dtype.kind != "f":
        return array
    random = np.random.default_rng(zlib.crc32(f"{name} {array.shape}".encode()))
    values = random.standard_normal(array.shape) * 0.4
    if name.endswith("running_var"):
        values = np.abs(values) + 0.5
    return np.asarray(values.astype(np.float32), array.dtype)


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


def script(program: Program, finding: str) -> str:
    """Return a runnable file that shows a finding of a program."""
    arrays = [f'    "{i.name}": {_literal(i)},' for i in program.inputs]
    fields = f"layers={program.layers!r}, body={program.body!r}, outputs={program.outputs!r}"
    rest = f"training={program.training!r}, optimizer={program.optimizer!r}"
    inputs = ", ".join(f'Input("{i.name}", ARRAYS["{i.name}"], {i.layout!r}, {i.gradient!r})' for i in program.inputs)
    lines = [f"# {line}" for line in finding.splitlines()] + ["import numpy as np", ""]
    lines += ["from tools.nets.compare import check", "from tools.nets.program import Input, Program", ""]
    lines += ["inf, nan = np.inf, np.nan", "ARRAYS = {", *arrays, "}", f"INPUTS = ({inputs}{',' if inputs else ''})"]
    lines += [f"PROGRAM = Program({program.family!r}, INPUTS, {fields}, {rest})"]
    return "\n".join([*lines, "print(PROGRAM.text())", "print(check(PROGRAM))"]) + "\n"


def _literal(argument: Input) -> str:
    array = argument.array
    values = np.array2string(array, separator=",", threshold=10**9, max_line_width=10**9, floatmode="unique")
    if not array.size:
        return f"np.zeros({array.shape}, np.{array.dtype.name})"
    return f"np.array({values.replace(chr(10), '')}, np.{array.dtype.name}).reshape({array.shape})"
