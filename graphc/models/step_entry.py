"""A step of ``compile_step`` as an entry of a model file: its graph, and all that it reads and writes by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.files.structure import Structure
from graphc.ir.graph.graph import Graph, Value, input_class
from graphc.ir.graph.interpret import Reemitter, assumed
from graphc.models.model_trace import nesting
from graphc.steps.step import CompiledStep
from graphc.steps.step_program import StepProgram
from graphc.tensors.tensor import Tensor

NUMBERS = "optimizer"
"""Paths of the numbers that schedules change begin with this."""


class StepParts(NamedTuple):
    """What a file needs of a step."""

    graph: Graph
    """Takes the batch, gives what the loss returned."""
    structure: Structure
    tensors: dict[str, Tensor]
    """Params and states by path."""
    numbers: dict[str, tuple[Any, np.ndarray]]
    """What stands for the same number in every step, and its value now, by path."""


def step_parts(step: CompiledStep, examples: Sequence[Any], named: Mapping[str, Any]) -> StepParts:
    """The parts of the step on this batch; nothing is run. Raises what tracing raises; ArgumentError for a step that
    does more than its program."""
    program = step.prepare(*examples, **named)
    _check(step, program)
    now = program.numbers
    plain = [v for v in program.graph.inputs if input_class(v) == "input"]
    given = plain[len(plain) - len(now) :]
    paths = {v: f"{NUMBERS}.{v.name}" for v in given}
    whole = nesting(program.traced.structure)["tuple"][-2]
    kept: list[int] = []
    structure = _renumbered(whole, kept)
    with assumed(program.graph):
        graph = _WithNumbers(paths).transform(program.graph)
    graph.set_outputs([graph.outputs[i] for i in kept])
    graph.assumptions = tuple(program.traced.assumptions.found.values())
    numbers = {paths[v]: (key, np.array(array)) for v, (key, array) in zip(given, now.items(), strict=True)}
    return StepParts(graph, structure, program.tensors(), numbers)


def _check(step: CompiledStep, program: StepProgram) -> None:
    options = step.options
    more = {
        "accumulate": options.accumulate > 1,
        "first_nan": bool(options.first_nan),
        "reductions over processes": any(function.lends for function in program.host),
        "hooks or Python functions": not all(function.lends for function in program.host),
        "attributes that each step sets": bool(program.sets_attributes),
        "hooks of the optimizer": any(
            getattr(o, name, None) for o in options.optimizers for name in ("_step_pre_hooks", "_step_post_hooks")
        ),
    }
    found = [name for name, is_used in more.items() if is_used]
    if found:
        raise ArgumentError(
            f"{step.name} has {', '.join(found)}, which run in Python and are not part of a file",
            remedy="a step without them",
        )


def _renumbered(structure: Structure, kept: list[int]) -> Structure:
    """The structure with its outputs numbered in order; ``kept`` gets their old numbers."""
    if structure is None:
        return None
    if isinstance(structure, int):
        if structure not in kept:
            kept.append(structure)
        return kept.index(structure)
    kind, parts = next(iter(structure.items()))
    if kind == "dict":
        return {kind: [[key, _renumbered(part, kept)] for key, part in parts]}
    return {kind: [_renumbered(part, kept) for part in parts]}


class _WithNumbers(Reemitter):
    """Copies the graph of a step with states in the place of numbers that each call gives."""

    def __init__(self, paths: Mapping[Value, str]):
        super().__init__()
        self._paths = paths

    def copy_input(self, value: Value) -> Value:
        if value not in self._paths:
            return super().copy_input(value)
        return self.target.add_input(value.type, value.name, "state", self._paths[value])
