"""What ``check(passes=True)`` compiles of a model: forward pass, gradients in one and in two graphs, training steps."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, GraphcError
from graphc.calls.bound_program import bound_values
from graphc.calls.function import Compiled
from graphc.checks.check_case import GRADIENT, write_case, wrong_by
from graphc.checks.gradient_rules import gradient_fault, may_compare
from graphc.checks.pass_check import Fault, Part, PassLine, PassReport, Reference, check_part, joined
from graphc.checks.pass_faults import described, last_node, made_small, place_of
from graphc.compiler.freeze import graph_arguments
from graphc.compiler.pass_points import Point, evaluated
from graphc.compiler.progress import Progress, shown
from graphc.ir.graph.graph import Graph, Value, input_class, input_path
from graphc.ir.graph.interpret import settle
from graphc.models.model_trace import snapshot
from graphc.ops.autodiff import split_forward_backward, vjp_graph
from graphc.passes.scans import MergeScans
from graphc.steps.step import CompiledStep
from graphc.tape.grad_mode import enable_grad
from graphc.tensors.generator import get_rng_state, set_rng_state
from graphc.tensors.placement import on_host
from graphc.tensors.structure import flatten
from graphc.tensors.tensor import Tensor
from graphc.tracing.dims import Dims
from graphc.tracing.trace import Traced, is_module, trace_sized

RULES, SPLIT = "gradient-rules", "split"
Found = tuple[PassReport, list[Fault]]


def check_model_passes(
    model: Any, examples: Sequence[Any], *, gradients: bool = False, dims: Any = None, folder: Any = None
) -> PassReport:
    """Every pass of compiling a model or function, or of a step of ``compile_step``, on example arguments; see
    ``check``."""
    step = isinstance(model, CompiledStep)
    name = model.name if isinstance(model, CompiledStep) else getattr(model, "__name__", type(model).__name__)
    reports = list[PassReport]()
    with shown(name) as progress:
        found = _step_parts(model, examples) if step else _model_parts(model, examples, gradients, dims)
        for part in found:
            if isinstance(part, Part):
                reports.append(_checked(part, progress, folder))
            else:
                reports.append(PassReport(part[0].lines, tuple(_written(fault, folder) for fault in part[1])))
    return joined(reports)


def checked_part(part: Part, folder: Any = None) -> PassReport:
    """Every pass of compiling one graph on given arguments; a file that shows a fault is written to ``folder``."""
    with shown(part.graph.name) as progress:
        return _checked(part, progress, folder)


def _checked(part: Part, progress: Progress, folder: Any) -> PassReport:
    report, first = check_part(part, tell=lambda text: progress.tell(f"checking {part.name}, {text}"))
    if first is None:
        return report
    progress.tell(f"making {part.name} small where {first[0]} is wrong")
    return PassReport(report.lines, (_fault(part, first, folder),))


def _fault(part: Part, first: tuple[Point, Graph, str], folder: Any) -> Fault:
    """The first fault of a part on a small graph, with the node that is wrong."""
    point, before, what = first
    wrong = wrong_by(point, part.passes)
    if not wrong(before, part.arguments):
        return Fault(part.name, point, f"{what}; not when it is done again")
    fault = made_small(part.name, point, before, part.arguments, wrong)
    return _written(replace(fault, node=place_of(fault, part.passes)), folder)


def _written(fault: Fault, folder: Any) -> Fault:
    return fault if folder is None or fault.graph is None else replace(fault, path=write_case(fault, folder))


# ---- models and functions


def _given(examples: Sequence[Any], dims: Any, model: Any) -> tuple[Sequence[Any], list[np.ndarray]]:
    if dims is not None:
        examples, _ = Dims(dims, model).with_numbers(tuple(examples), {})
    tensors, _ = flatten((tuple(examples), {}))
    return examples, [np.array(t._values(force=True)) for t in tensors]


def _arguments(name: str, traced: Traced, graph: Graph, given: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    if sum(input_class(v) == "input" for v in graph.inputs) != len(given):
        raise ArgumentError(f"check of {name}: the trace asks for more than the examples give", remedy="compile_step")
    return tuple(np.array(a) for a in graph_arguments(graph, traced.state(), given))


def _model_parts(model: Any, examples: Sequence[Any], gradients: bool, dims: Any) -> Iterator[Part | Found]:
    try:
        traced = snapshot(model, examples, dims=dims)
    except GraphcError:
        part = training_part(model, examples, dims)
        if part is None:
            raise
        yield part
        return
    examples, given = _given(examples, dims, model)
    graph = settle(traced.graph)
    yield Part("forward", graph, _arguments("the forward pass", traced, graph, given))
    if not gradients:
        return
    with enable_grad():
        traced = trace_sized(model, examples, {}, dims)
    graph = settle(traced.graph)
    arguments = _arguments("gradients", traced, graph, given)
    yield from _gradient_parts(traced, graph, arguments, flatten((tuple(examples), {}))[0])


def _gradient_parts(
    traced: Traced, graph: Graph, arguments: tuple[np.ndarray, ...], leaves: Sequence[Tensor]
) -> Iterator[Part | Found]:
    known = {v.name: v for v in graph.inputs}
    sources = [v for v, leaf in zip(traced.inputs, leaves, strict=False) if leaf._requires_grad]
    sources += [a.value for a in traced.arguments if a.tensor._requires_grad]
    wanted = [known[v.name] for v in sources if v in traced.reached]
    chosen = [i for i, is_one in enumerate(traced.differentiable) if is_one]
    if not wanted or not chosen:
        raise ArgumentError(
            "check of gradients: no output depends on a parameter or example that requires gradients",
            remedy="without gradients=True; or an example with requires_grad",
        )
    yield _rules(graph, arguments, wanted, chosen)
    joint = MergeScans().run(vjp_graph(graph, wanted, chosen)).graph
    outputs = evaluated(graph, arguments)[0]
    random = np.random.default_rng(3)
    seeds = [_seed(random, outputs[i]) for i in chosen]
    whole = (*arguments, *seeds)
    yield Part("gradients", joint, whole)
    split = split_forward_backward(joint, len(graph.inputs), len(graph.outputs))
    first = evaluated(split.forward, arguments)
    kept = [arguments[i] for i in split.kept]
    behind = (*first[0][len(graph.outputs) :], *kept, *seeds)
    yield _split_line(joint, whole, first, evaluated(split.backward, behind)[0], len(graph.outputs))
    yield Part("split forward", split.forward, arguments)
    yield Part("split backward", split.backward, behind)


def _seed(random: np.random.Generator, output: np.ndarray) -> np.ndarray:
    return np.asarray(random.uniform(0.5, 1.5, output.shape)).astype(output.dtype)


def _rules(graph: Graph, arguments: tuple[np.ndarray, ...], wanted: Sequence[Value], chosen: Sequence[int]) -> Found:
    """Gradients against difference quotients: what the joint graph means is itself made by the rules of its ops."""
    point = Point(GRADIENT, 0, RULES)
    if not may_compare(graph):
        note = "bodies of loops and branches are not computed in f64"
        return PassReport((PassLine("gradients", point, 0, note=note, compared=False),)), []
    what = gradient_fault(graph, arguments, wanted, chosen)
    line = PassLine("gradients", point, 0, 0.0, not what, what)
    if not what:
        return PassReport((line,)), []
    fault = made_small("gradients", point, graph, arguments, wrong_by(point))
    assert fault.graph is not None
    return PassReport((line,)), [replace(fault, node=described(last_node(fault.graph)))]


def _split_line(joint: Graph, whole: tuple[np.ndarray, ...], first: Any, gradients: list[np.ndarray], n: int) -> Found:
    """The two graphs one after the other against the one."""
    reference = Reference(joint, whole)
    found = ([*first[0][:n], *gradients], first[1])
    wrong, point = reference.wrong(found), Point(SPLIT, 0, SPLIT)
    line = PassLine("split", point, 0, reference.difference(found), not wrong, wrong)
    return PassReport((line,)), [Fault("split", point, wrong)] if wrong else []


# ---- training functions and steps


def training_part(function: Any, examples: Sequence[Any], dims: Any) -> Part | None:
    """The call of a function that trains, as the second one would be: momentum is not 0 then. Nothing is written; None
    for what does not train."""
    if is_module(getattr(function, "_target", function)) or not callable(function):
        return None
    compiled = function if isinstance(function, Compiled) else Compiled(function, dims=dims)
    with enable_grad():
        found: Any = compiled._find_and_run(tuple(examples), {}, only_find=True)
    variant, leaves = found
    if variant.training is None:
        return None
    graph = settle(variant.traced.graph)
    given = iter([np.array(on_host(t._data)) for t in leaves])
    state = {path: np.array(on_host(slot.tensor()._data)) for path, slot in variant.outside.slots.items()}
    bound = {v: input_path(v) for v in graph.inputs if input_class(v) != "input"}
    first = [state[bound[v]] if v in bound else next(given) for v in graph.inputs]
    written = evaluated(graph, first)[1]
    second = [written.get(bound[v], a) if v in bound else a for v, a in zip(graph.inputs, first, strict=True)]
    return Part("training", graph, tuple(np.array(a) for a in second))


class _Recorder:
    """Stands in the place of a step's calls and keeps what the next one is given."""

    def __init__(self, program: Any):
        self.calls = program.calls
        self._program = program
        self.given: list[np.ndarray] = []
        self.bound: list[np.ndarray] = []

    @property
    def nbytes(self) -> int:
        """Of the calls themselves."""
        return self.calls.nbytes

    def run(self, given: Sequence[Any]) -> Any:
        """Copies all arguments, then runs the step."""
        self.given = [np.array(on_host(a)) for a in given]
        self.bound = [np.array(on_host(t._data)) for t in self._program.binding.tensors()]
        return self.calls.run(given)


def _step_parts(step: CompiledStep, examples: Sequence[Any]) -> Iterator[Part]:
    """The whole step, as one that a copy of model and optimizer takes after an update: momentum is not 0 then. With
    accumulation also the calls that only add gradients up."""
    copied = copy.deepcopy(step)
    calls, drawn = step.options.accumulate, get_rng_state()
    try:
        for _ in range(calls):
            copied(*examples)
        programs: list[Any] = list(copied._programs)
        recorders = [_Recorder(program) for program in programs]
        for program, recorder in zip(programs, recorders, strict=True):
            program.calls = recorder
        for _ in range(calls):
            copied(*examples)
        for program, recorder in zip(programs, recorders, strict=True):
            program.calls = recorder.calls
    finally:
        set_rng_state(drawn)
    used = [pair for pair in zip(programs, recorders, strict=True) if pair[1].given or pair[1].bound]
    if not used:
        raise ArgumentError("check of a step: its second call was not that of the first", remedy="other examples")
    for program, recorder in used:
        paths = [input_path(v) for v in bound_values(program.graph, program.program)]
        state = dict(zip(paths, recorder.bound, strict=True))
        graph = settle(program.graph)
        given = iter(recorder.given)
        arguments = [next(given) if input_class(v) == "input" else state[input_path(v)] for v in graph.inputs]
        yield Part("step" if program.updates else "accumulation", graph, tuple(np.array(a) for a in arguments))
