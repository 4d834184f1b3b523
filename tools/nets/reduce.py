"""Make failing programs small: fewer statements, smaller tensors, plainer numbers, while they still fail."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import torch

from tools.nets.program import Input, Program

T = TypeVar("T")
BUDGET = 60.0
"""Seconds for one program."""


def reduced(
    program: T, fails: Callable[[T], bool], passes: Sequence[Callable[[T], Iterator[T]]] = (), budget: float = BUDGET
) -> T:
    """Return a smaller program that fails in the same way: each pass yields candidates, and the first one that fails
    takes the place of the program, until none does or the time is over."""
    end = time.monotonic() + budget
    again = True
    while again:
        again = False
        for candidates in passes or PASSES:
            smaller = True
            while smaller:
                smaller = False
                for candidate in candidates(program):
                    if time.monotonic() > end:
                        return program
                    if fails(candidate):
                        program, smaller, again = candidate, True, True
                        break
    return program


def _fewer_outputs(program: Program) -> Iterator[Program]:
    if program.optimizer:
        yield replace(program, optimizer="")
    if program.training:
        yield replace(program, training=False)
    if len(program.outputs) > 1:
        for name in program.outputs:
            yield replace(program, outputs=(name,))
        for name in program.outputs:
            yield replace(program, outputs=tuple(n for n in program.outputs if n != name))


def _fewer_statements(program: Program) -> Iterator[Program]:
    """Yield programs without one statement; needed variables become arguments."""
    values = _values_of(program)
    for i in reversed(range(len(program.body))):
        body = (*program.body[:i], *program.body[i + 1 :])
        names = _assigned(program.body[i])
        text = " ".join((*body, *program.outputs))
        needed = [n for n in names if re.search(rf"\b{n}\b", text)]
        if any(n in program.outputs for n in needed):
            later = _last_before(program.body[:i], names)
            if later:
                yield replace(program, body=body, outputs=tuple(later if n in needed else n for n in program.outputs))
        if all(n in values for n in needed):
            arguments = [Input(n, values[n], "dense", values[n].dtype.kind == "f") for n in needed]
            if not any(n in program.outputs for n in needed):
                yield replace(program, body=body, inputs=(*program.inputs, *arguments))


def _last_before(body: tuple[str, ...], used: list[str]) -> str:
    """Return the last variable that statements assign."""
    names = [n for line in body for n in _assigned(line) if n not in used]
    return names[-1] if names else ""


def _assigned(line: str) -> list[str]:
    """Return the names of variables that a statement assigns."""
    match = re.match(r"((?:v\d+(?:, )?)+),? = ", line)
    return match[1].split(", ") if match else []


def _values_of(program: Program) -> dict[str, np.ndarray]:
    """Return the contents of a program's variables on PyTorch right after their creation."""
    net, tensors = program.net(torch), program.tensors(torch, gradients=False)
    scope: dict[str, Any] = {"t": torch, "nn": torch.nn, "F": torch.nn.functional, "self": net}
    scope |= {"inf": np.inf, "nan": np.nan}
    scope |= {i.name: tensor for i, tensor in zip(program.inputs, tensors, strict=True)}
    values: dict[str, np.ndarray] = {}
    with torch.no_grad():
        for line in program.body:
            try:
                exec(line, scope)
            except Exception:
                return values
            values |= {n: np.array(scope[n].detach().numpy()) for n in _assigned(line)}
    return values


def _fewer_inputs(program: Program) -> Iterator[Program]:
    text = " ".join((*program.body, *program.outputs))
    used = tuple(i for i in program.inputs if re.search(rf"\b{i.name}\b", text))
    if len(used) < len(program.inputs):
        yield replace(program, inputs=used)
    for i, argument in enumerate(program.inputs):
        if argument.layout != "dense":
            yield program.with_array(i, argument.array, layout="dense")
        if argument.gradient:
            yield program.with_array(i, argument.array, gradient=False)


def _fewer_layers(program: Program) -> Iterator[Program]:
    text = " ".join(program.body)
    used = tuple((name, layer) for name, layer in program.layers if f"self.{name}(" in text)
    if len(used) < len(program.layers):
        yield replace(program, layers=used)


def _smaller(program: Program) -> Iterator[Program]:
    """Yield all dimensions of one size made smaller, and the numbers of that size in the text too."""
    sizes = sorted({e for i in program.inputs for e in i.array.shape if e > 1}, reverse=True)
    for size in sizes:
        for less in dict.fromkeys((1, 2, size // 2, size - 1)):
            if less < size:
                yield _resized(program, size, less, True)
                yield _resized(program, size, less, False)
    for i, argument in enumerate(program.inputs):
        for axis, extent in enumerate(argument.array.shape):
            for less in dict.fromkeys((1, extent // 2, extent - 1)):
                if 0 < less < extent:
                    yield program.with_array(i, argument.array.take(range(less), axis))


def _resized(program: Program, size: int, less: int, in_text: bool) -> Program:
    inputs = []
    for argument in program.inputs:
        array = argument.array
        for axis, extent in enumerate(array.shape):
            if extent == size:
                array = array.take(range(less), axis)
        inputs.append(replace(argument, array=array))

    def shrunk(text: str) -> str:
        return re.sub(rf"(?<![\w.]){size}(?![\w.])", str(less), text) if in_text else text

    layers = tuple((name, shrunk(layer)) for name, layer in program.layers)
    return replace(program, inputs=tuple(inputs), layers=layers, body=tuple(map(shrunk, program.body)))


def _plainer(program: Program) -> Iterator[Program]:
    """Yield arguments of plainer numbers."""
    for i, argument in enumerate(program.inputs):
        if argument.array.dtype.kind != "f" or not argument.array.size:
            continue
        ones, short = np.ones_like(argument.array), np.round(argument.array, 1)
        for array in (ones, short):
            if not np.array_equal(array, argument.array) and not np.array_equal(argument.array, ones):
                yield program.with_array(i, array)


PASSES: tuple[Any, ...] = (_fewer_outputs, _fewer_statements, _fewer_inputs, _fewer_layers, _smaller, _plainer)
"""Passes over a program of fixed sizes."""
