"""A step of ``compile_step`` as an entry of a model file: its graph, and its tensors and numbers by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.calls.bindings import Slot
from graphc.calls.function import Compiled
from graphc.files.structure import Structure
from graphc.ir.graph.graph import Graph, Value, input_class, input_path
from graphc.ir.graph.interpret import Reemitter, assumed
from graphc.models.model_trace import nesting
from graphc.steps.step import CompiledStep
from graphc.tape.grad_mode import enable_grad
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import Traced

NUMBERS = "optimizer"
"""Prefix of the paths of numbers that schedules change."""


class TrainingParts(NamedTuple):
    """The parts of a training step or function for a file."""

    graph: Graph
    """The graph: takes the batch, returns the results."""
    structure: Structure
    tensors: dict[str, Tensor]
    """Params and states by path."""
    numbers: dict[str, tuple[Any, np.ndarray]]
    """For each path: a key that identifies the same number in every step, and its present value."""


def step_parts(step: CompiledStep, examples: Sequence[Any], named: Mapping[str, Any]) -> TrainingParts:
    """Return the parts of the step for this batch without running it.

    Raise the errors of tracing, and ArgumentError for a step with effects outside its program.
    """
    program = step.prepare(*examples, **named)
    refused = {"accumulate": step.options.accumulate > 1, "first_nan": bool(step.options.first_nan)}
    structure = nesting(program.traced.structure)["tuple"][0]
    return _parts(step.name, program.traced, program.slots, structure, refused)


def function_parts(function: Compiled, examples: Sequence[Any], named: Mapping[str, Any]) -> TrainingParts | None:
    """Return the parts of a function that trains, for this batch, without running it; None for other functions.

    Raise the errors of tracing, and ArgumentError for a function with effects outside its program.
    """
    with enable_grad():
        traced, outside = function.traced(tuple(examples), dict(named))
    if traced.training is None:
        return None
    refused = {"first_nan": function.first_nan, "gradients that stay in grad": traced.training.kept > 0}
    return _parts(traced.graph.name, traced, outside.slots, nesting(traced.structure), refused)


def _parts(
    name: str, traced: Traced, slots: Mapping[str, Slot], structure: Structure, refused: Mapping[str, Any]
) -> TrainingParts:
    """Return the parts of a trace with the outputs of this structure."""
    training: Any = traced.training
    _check(name, traced, training, refused)
    keys, arrays = ([], []) if training.passed is None else (training.passed.keys(), training.passed.arrays())
    plain = [v for v in traced.graph.inputs if input_class(v) == "input"]
    paths = {v: f"{NUMBERS}.{v.name}" for v in plain[len(plain) - len(keys) :]}
    output_indices: list[int] = []
    structure = _renumbered(structure, output_indices)
    with assumed(traced.graph):
        graph = _WithNumbers(paths).transform(traced.graph)
    graph.set_outputs([graph.outputs[i] for i in output_indices])
    graph.assumptions = tuple(traced.assumptions.found.values())
    numbers = {path: (key, np.array(array)) for path, key, array in zip(paths.values(), keys, arrays, strict=True)}
    bound = [input_path(v) for v in traced.graph.inputs if input_class(v) != "input"]
    return TrainingParts(graph, structure, {path: slots[path].tensor() for path in bound}, numbers)


def _check(name: str, traced: Traced, training: Any, refused: Mapping[str, Any]) -> None:
    more = {
        **refused,
        "reductions over processes": any(function.lends for function in traced.host),
        "hooks or Python functions": not all(function.lends for function in traced.host),
        "attributes that each call sets": bool(traced.effects),
        "hooks of the optimizer": any(
            getattr(o, hooks, None) for o in training.optimizers for hooks in ("_step_pre_hooks", "_step_post_hooks")
        ),
    }
    unsupported = [what for what, is_used in more.items() if is_used]
    if unsupported:
        raise ArgumentError(
            f"{name} has {', '.join(unsupported)}, which run in Python and are not part of a file",
            remedy="export a step or a function without them",
        )


def _renumbered(structure: Structure, output_indices: list[int]) -> Structure:
    """Return the structure with its outputs renumbered in order. Append their old indices to ``kept``."""
    if structure is None:
        return None
    if isinstance(structure, int):
        if structure not in output_indices:
            output_indices.append(structure)
        return output_indices.index(structure)
    kind, children = next(iter(structure.items()))
    if kind == "dict":
        return {kind: [[key, _renumbered(child, output_indices)] for key, child in children]}
    return {kind: [_renumbered(child, output_indices) for child in children]}


class _WithNumbers(Reemitter):
    """Copies the graph of a step, with states in place of the numbers that each call passes."""

    def __init__(self, paths: Mapping[Value, str]):
        super().__init__()
        self._paths = paths

    def copy_input(self, value: Value) -> Value:
        if value not in self._paths:
            return super().copy_input(value)
        return self.target.add_input(value.type, value.name, "state", self._paths[value])
