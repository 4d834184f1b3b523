"""Intermediate results of a compilation: graphs after graph passes, programs after lowering and program passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from graphc.base.records import dataclass
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.base import Context, ProgramPass, Scheduled
from graphc.codegen.schedule.forms import Forms
from graphc.codegen.schedule.nests import Nests
from graphc.codegen.schedule.pipeline import PIPELINE as SCHEDULE
from graphc.codegen.schedule.pipeline import print_scheduled, verify_scheduled
from graphc.compiler.compile import compile_stages, load_compiled
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import Graph, input_class, input_path
from graphc.ir.graph.interpret import Evaluator
from graphc.ir.kernel.dims import bind as bind_program
from graphc.ir.kernel.dims import dims_of_program
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Program
from graphc.passes.base import Pass
from graphc.passes.pipeline import run_passes

Results = tuple[list[np.ndarray], dict[str, np.ndarray]]
"""Outputs, and the new content of each written param and state by path."""
GRAPH, PROGRAM, NATIVE = "graph", "program", "native"
LOWERING = "lowering"


@dataclass(frozen=True)
class Point:
    """The point after one pass."""

    kind: str
    """GRAPH, PROGRAM or NATIVE."""
    number: int
    """Its index among those of its kind."""
    name: str
    """The name of the pass; ``nests/step`` for a step on nests."""

    def __str__(self) -> str:
        return self.name


def after_graph_pass(step: Pass, graph: Graph, target: Target) -> tuple[Graph, int]:
    """Return a graph after a graph pass, and the number of changes reported by the pass."""
    result, runs = run_passes(graph, (step,), target.costs)
    return result, runs[0].changed


def evaluated(graph: Graph, arguments: Sequence[np.ndarray]) -> Results:
    """Evaluate a graph on these arguments by the reference interpreter."""
    evaluator = Evaluator()
    with np.errstate(all="ignore"):
        outputs = evaluator.run(graph, list(arguments))
    return [np.array(o) for o in outputs], {path: np.array(a) for path, a in evaluator.state.items()}


@dataclass(frozen=True)
class Stop:
    """A program after one pass."""

    point: Point
    changed: int
    program: Program | None
    """None where the pass fails."""
    text: str
    """Text of the program, equal only for equal programs; or the error of the pass."""


def program_stops(stages: Stages) -> Iterator[Stop]:
    """Yield the program of an optimized graph after lowering, after every program pass, and after every step on nests.

    Each is computed on demand. The last one belongs to a failing pass, if there is one.
    """
    context = Context(Forms(stages.target))
    scheduled = None
    for number, step in enumerate([None, *chain.from_iterable(map(_with_parts, SCHEDULE))]):
        point = Point(PROGRAM, number, LOWERING if step is None else step.name)
        try:
            if step is None or scheduled is None:
                scheduled = current = Scheduled(stages.lowered)
                changed = len(current.program.kernels)
            else:
                result = step.run(scheduled, context)
                current, changed = result.scheduled, result.changed
            verify_scheduled(current)
        # NOTE: any exception of a pass is its failure.
        except Exception as error:
            yield Stop(point, 0, None, failure(error))
            return
        if "/" not in point.name:
            scheduled = current
        yield Stop(point, changed, current.program, print_scheduled(current))


def _with_parts(step: ProgramPass) -> list[ProgramPass]:
    """Return a pass after the prefixes of its steps."""
    if not isinstance(step, Nests):
        return [step]
    return [*(Nests(f"nests/{last.name}", step.steps[: i + 1]) for i, last in enumerate(step.steps)), step]


def failure(error: Exception) -> str:
    """Return the first line of an error, with its class."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


def bound_program(program: Program, sizes: Mapping[str, int]) -> Program:
    """Return a program for sizes of its named dimensions."""
    names = dims_of_program(program)
    return bind_program(program, {n: sizes[n] for n in names}) if names else program


def program_runner(stages: Stages, sizes: dict[str, int]) -> Callable[[Program, Sequence[np.ndarray]], Results]:
    """Return a function that runs a graph's programs by the kernel interpreter."""

    def run(program: Program, arguments: Sequence[np.ndarray]) -> Results:
        copies = [a.copy() for a in arguments]
        outputs = run_program(bound_program(program, sizes), copies)
        return list(outputs), changed_states(stages.optimized, copies)

    return run


def run_native(stages: Stages, arguments: Sequence[np.ndarray]) -> Results:
    """Compile and run native code."""
    program = load_compiled(compile_stages(stages))
    copies = [a.copy() for a in arguments]
    pairs = list(zip(stages.optimized.inputs, copies, strict=True))
    inputs = [a for v, a in pairs if input_class(v) == "input"]
    bound = tuple(a for v, a in pairs if input_class(v) != "input")
    return program.run(inputs, bound), changed_states(stages.optimized, copies)


def changed_states(graph: Graph, arguments: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Return the contents of params and states, by path."""
    pairs: Any = zip(graph.inputs, arguments, strict=True)
    return {input_path(v): a for v, a in pairs if input_class(v) != "input"}
