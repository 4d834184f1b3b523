"""A step of ``compile_step`` as an entry of a model file: its graph, and its tensors and numbers by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.calls.variant import Variant
from graphc.files.structure import Structure
from graphc.ir.graph.graph import Graph, Value, input_class
from graphc.ir.graph.interpret import Reemitter, assumed
from graphc.models.model_trace import nesting
from graphc.steps.step import CompiledStep
from graphc.tensors.tensor import Tensor

NUMBERS = "optimizer"
"""Prefix of the paths of numbers that schedules change."""


class StepParts(NamedTuple):
    """The parts of a step for a file."""

    graph: Graph
    """The graph: takes the batch, returns the loss's result."""
    structure: Structure
    tensors: dict[str, Tensor]
    """Params and states by path."""
    numbers: dict[str, tuple[Any, np.ndarray]]
    """For each path: a key that identifies the same number in every step, and its present value."""


def step_parts(step: CompiledStep, examples: Sequence[Any], named: Mapping[str, Any]) -> StepParts:
    """Return the parts of the step for this batch without running it.

    Raise the errors of tracing, and ArgumentError for a step with effects outside its program.
    """
    program = step.prepare(*examples, **named)
    _check(step, program)
    now = program.passed_numbers
    plain = [v for v in program.graph.inputs if input_class(v) == "input"]
    number_inputs = plain[len(plain) - len(now) :]
    paths = {v: f"{NUMBERS}.{v.name}" for v in number_inputs}
    loss_structure = nesting(program.traced.structure)["tuple"][0]
    output_indices: list[int] = []
    structure = _renumbered(loss_structure, output_indices)
    with assumed(program.graph):
        graph = _WithNumbers(paths).transform(program.graph)
    graph.set_outputs([graph.outputs[i] for i in output_indices])
    graph.assumptions = tuple(program.traced.assumptions.found.values())
    numbers = {paths[v]: (key, np.array(array)) for v, (key, array) in zip(number_inputs, now.items(), strict=True)}
    return StepParts(graph, structure, program.tensors(), numbers)


def _check(step: CompiledStep, program: Variant) -> None:
    options = step.options
    more = {
        "accumulate": options.accumulate > 1,
        "first_nan": bool(options.first_nan),
        "reductions over processes": any(function.lends for function in program.traced.host),
        "hooks or Python functions": not all(function.lends for function in program.traced.host),
        "attributes that each step sets": bool(program.traced.effects),
        "hooks of the optimizer": any(
            getattr(o, name, None) for o in options.optimizers for name in ("_step_pre_hooks", "_step_post_hooks")
        ),
    }
    unsupported = [name for name, is_used in more.items() if is_used]
    if unsupported:
        raise ArgumentError(
            f"{step.name} has {', '.join(unsupported)}, which run in Python and are not part of a file",
            remedy="export a step without them",
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
