"""The graphs that ``check(passes=True)`` compiles for a model: forward, gradients in one or two graphs, steps."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, GraphcError
from graphc.calls.function import Compiled
from graphc.calls.segments import Segmented
from graphc.checks.check import described
from graphc.checks.check_case import GRADIENT, write_case, wrong_by
from graphc.checks.gradient_rules import gradient_fault, may_compare
from graphc.checks.pass_check import CheckedGraph, Fault, PassLine, PassReport, Reference, check_part, joined
from graphc.checks.pass_faults import last_node, made_small, place_of
from graphc.checks.pass_points import Point, evaluated
from graphc.compiler.freeze import graph_arguments
from graphc.compiler.progress import CompilationProgress, shown
from graphc.ir.graph.graph import Graph, Value, input_class, input_path
from graphc.ir.graph.interpret import settle
from graphc.models.model_trace import snapshot
from graphc.ops.autodiff import split_forward_backward, vjp_graph
from graphc.passes.scans import MergeScans
from graphc.steps.step import CompiledStep
from graphc.tape.grad_mode import enable_grad
from graphc.tensors.placement import on_host
from graphc.tensors.random.generator import get_rng_state, set_rng_state
from graphc.tensors.structure import flatten
from graphc.tensors.tensor import Tensor
from graphc.tracing.dims import Dims
from graphc.tracing.trace import Traced, is_module, trace_sized

RULES, SPLIT = "gradient-rules", "split"
RuleResult = tuple[PassReport, list[Fault]]


def check_model_passes(
    model: Any, examples: Sequence[Any], *, gradients: bool = False, dims: Any = None, folder: Any = None
) -> PassReport:
    """Check every pass of compiling a model, a function, or a step of ``compile_step``, on example arguments; see
    ``check``.
    """
    step = isinstance(model, CompiledStep)
    name = model.name if isinstance(model, CompiledStep) else getattr(model, "__name__", type(model).__name__)
    reports = list[PassReport]()
    with shown(name) as progress:
        graphs = _step_parts(model, examples) if step else _model_parts(model, examples, gradients, dims)
        for item in graphs:
            if isinstance(item, CheckedGraph):
                reports.append(_checked(item, progress, folder))
            else:
                reports.append(PassReport(item[0].lines, tuple(_written(fault, folder) for fault in item[1])))
    return joined(reports)


def checked_part(graph_part: CheckedGraph, folder: Any = None) -> PassReport:
    """Check every pass of compiling one graph on given arguments. Write a file for each fault to ``folder``."""
    with shown(graph_part.graph.name) as progress:
        return _checked(graph_part, progress, folder)


def _checked(graph_part: CheckedGraph, progress: CompilationProgress, folder: Any) -> PassReport:
    report, first = check_part(graph_part, tell=lambda text: progress.tell(f"checking {graph_part.name}, {text}"))
    if first is None:
        return report
    progress.tell(f"reducing {graph_part.name}, where {first[0]} is wrong")
    return PassReport(report.lines, (_fault(graph_part, first, folder),))


def _fault(graph_part: CheckedGraph, first: tuple[Point, Graph, str], folder: Any) -> Fault:
    """Reduce the first fault of a graph to a small one, and locate the wrong node."""
    point, before, what = first
    wrong = wrong_by(point, graph_part.passes)
    if not wrong(before, graph_part.arguments):
        return Fault(graph_part.name, point, f"{what}; not reproducible: a second run was right")
    fault = made_small(graph_part.name, point, before, graph_part.arguments, wrong)
    return _written(replace(fault, node=place_of(fault, graph_part.passes)), folder)


def _written(fault: Fault, folder: Any) -> Fault:
    return fault if folder is None or fault.graph is None else replace(fault, path=write_case(fault, folder))


# ---- models and functions


def _example_arrays(examples: Sequence[Any], dims: Any, model: Any) -> tuple[Sequence[Any], list[np.ndarray]]:
    if dims is not None:
        examples, _ = Dims(dims, model).with_numbers(tuple(examples), {})
    tensors, _ = flatten((tuple(examples), {}))
    return examples, [np.array(t._values(force=True)) for t in tensors]


def _arguments(name: str, traced: Traced, graph: Graph, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    if sum(input_class(v) == "input" for v in graph.inputs) != len(arrays):
        raise ArgumentError(
            f"check of {name}: the graph has more inputs than the examples", remedy="check the step of compile_step"
        )
    return tuple(np.array(a) for a in graph_arguments(graph, traced.state(), arrays))


def _model_parts(
    model: Any, examples: Sequence[Any], gradients: bool, dims: Any
) -> Iterator[CheckedGraph | RuleResult]:
    try:
        traced = snapshot(model, examples, dims=dims, reads_sizes=not gradients)
    except GraphcError:
        trained = training_part(model, examples, dims)
        if trained is None:
            raise
        yield trained
        return
    examples, arrays = _example_arrays(examples, dims, model)
    if traced.reads:
        for i, (graph, arguments) in enumerate(read_parts(traced, arrays)):
            yield CheckedGraph(f"forward.{i}", graph, tuple(arguments))
        return
    graph = settle(traced.graph)
    yield CheckedGraph("forward", graph, _arguments("the forward pass", traced, graph, arrays))
    if not gradients:
        return
    with enable_grad():
        traced = trace_sized(model, examples, {}, dims)
    graph = settle(traced.graph)
    arguments = _arguments("gradients", traced, graph, arrays)
    yield from _gradient_parts(traced, graph, arguments, flatten((tuple(examples), {}))[0])


def read_parts(traced: Traced, arrays: Sequence[np.ndarray]) -> Iterator[tuple[Graph, list[np.ndarray]]]:
    """Yield the graphs of a trace that reads sizes, each with its arguments in a call, computed by references."""
    values: dict[Value | None, np.ndarray] = dict(zip(traced.inputs, arrays, strict=True))
    for part, group in traced.parts():
        graph = settle(part.graph)
        arguments = [np.array(a) for a in graph_arguments(graph, traced.state(), [values[v] for v in part.inputs])]
        yield graph, arguments
        values.update(zip(part.outputs, evaluated(graph, arguments)[0], strict=True))
        values.update({traced.reads[i].input: values[traced.reads[i].value] for i in group})


def _gradient_parts(
    traced: Traced, graph: Graph, arguments: tuple[np.ndarray, ...], leaves: Sequence[Tensor]
) -> Iterator[CheckedGraph | RuleResult]:
    inputs = {v.name: v for v in graph.inputs}
    sources = [v for v, leaf in zip(traced.inputs, leaves, strict=False) if leaf._requires_grad]
    sources += [a.value for a in traced.arguments if a.tensor._requires_grad]
    differentiated = [inputs[v.name] for v in sources if v in traced.reached]
    chosen = [i for i, is_one in enumerate(traced.differentiable) if is_one]
    if not differentiated or not chosen:
        raise ArgumentError(
            "check of gradients: no output depends on a parameter or example that requires gradients",
            remedy="check without gradients=True, or pass an example that requires gradients",
        )
    yield _rules(graph, arguments, differentiated, chosen)
    joint = MergeScans().run(vjp_graph(graph, differentiated, chosen)).graph
    outputs = evaluated(graph, arguments)[0]
    random = np.random.default_rng(3)
    seeds = [_seed(random, outputs[i]) for i in chosen]
    joint_arguments = (*arguments, *seeds)
    yield CheckedGraph("gradients", joint, joint_arguments)
    split = split_forward_backward(joint, len(graph.inputs), len(graph.outputs))
    first = evaluated(split.forward, arguments)
    saved = [arguments[i] for i in split.kept]
    backward_arguments = (*first[0][len(graph.outputs) :], *saved, *seeds)
    yield _split_line(
        joint, joint_arguments, first, evaluated(split.backward, backward_arguments)[0], len(graph.outputs)
    )
    yield CheckedGraph("split forward", split.forward, arguments)
    yield CheckedGraph("split backward", split.backward, backward_arguments)


def _seed(random: np.random.Generator, output: np.ndarray) -> np.ndarray:
    return np.asarray(random.uniform(0.5, 1.5, output.shape)).astype(output.dtype)


def _rules(
    graph: Graph, arguments: tuple[np.ndarray, ...], differentiated: Sequence[Value], chosen: Sequence[int]
) -> RuleResult:
    """Compare gradients with difference quotients. Evaluating the joint graph cannot find a wrong gradient rule: its
    ops' rules built the graph.
    """
    point = Point(GRADIENT, 0, RULES)
    if not may_compare(graph):
        note = "bodies of loops and branches are not computed in f64"
        return PassReport((PassLine("gradients", point, 0, note=note, compared=False),)), []
    what = gradient_fault(graph, arguments, differentiated, chosen)
    line = PassLine("gradients", point, 0, good=not what, note=what)
    if not what:
        return PassReport((line,)), []
    fault = made_small("gradients", point, graph, arguments, wrong_by(point))
    assert fault.graph is not None
    return PassReport((line,)), [replace(fault, node=described(last_node(fault.graph)))]


def _split_line(
    joint: Graph, joint_arguments: tuple[np.ndarray, ...], first: Any, gradients: list[np.ndarray], n: int
) -> RuleResult:
    """Compare running the two graphs in sequence with running the joint one."""
    reference = Reference(joint, joint_arguments)
    outcome = ([*first[0][:n], *gradients], first[1])
    wrong, point = reference.wrong(outcome), Point(SPLIT, 0, SPLIT)
    line = PassLine("split", point, 0, reference.difference(outcome), not wrong, wrong)
    return PassReport((line,)), [Fault("split", point, wrong)] if wrong else []


# ---- training functions and steps


def training_part(function: Any, examples: Sequence[Any], dims: Any) -> CheckedGraph | None:
    """Return the graph of a function that trains, with the arguments of its second call, when momentum is not 0.

    Write to no tensor. Return None for functions without training.
    """
    if is_module(getattr(function, "_target", function)) or not callable(function):
        return None
    compiled = function if isinstance(function, Compiled) else Compiled(function, dims=dims)
    with enable_grad():
        program_and_leaves: Any = compiled._find_and_run(tuple(examples), {}, only_find=True)
    variant, leaves = program_and_leaves
    if isinstance(variant, Segmented) or variant.training is None:
        return None
    graph, first = _training_arguments(variant, leaves)
    bound = {v: input_path(v) for v in graph.inputs if input_class(v) != "input"}
    written = evaluated(graph, first)[1]
    second = [written.get(bound[v], a) if v in bound else a for v, a in zip(graph.inputs, first, strict=True)]
    return CheckedGraph("training", graph, tuple(np.array(a) for a in second))


def _training_arguments(variant: Any, leaves: Sequence[Any]) -> tuple[Graph, list[np.ndarray]]:
    """Return the graph of a program that trains, and its arguments in a call on these tensors now."""
    graph, passed = settle(variant.traced.graph), variant.training.passed
    arrays = iter([np.array(on_host(t._data)) for t in leaves] + ([] if passed is None else passed.arrays()))
    state = {path: np.array(on_host(slot.tensor()._data)) for path, slot in variant.outside.slots.items()}
    return graph, [next(arrays) if input_class(v) == "input" else state[input_path(v)] for v in graph.inputs]


def _step_parts(step: CompiledStep, examples: Sequence[Any]) -> Iterator[CheckedGraph]:
    """Return the graph of a step with the arguments of a call after an update, when momentum is not 0.

    A copy of model and optimizer makes the calls. With accumulation, also return the graph of the calls that only add
    up gradients.
    """
    copied, drawn = copy.deepcopy(step), get_rng_state()
    parts: dict[str, CheckedGraph] = {}
    try:
        for _ in range(2 * step.options.accumulate):
            program, leaves = copied.program_for_call(*examples)
            graph, arguments = _training_arguments(program, leaves)
            assert program.training is not None, "steps train"
            name = "step" if program.training.step.updates else "accumulation"
            parts[name] = CheckedGraph(name, graph, tuple(np.array(a) for a in arguments))
            copied(*examples)
    finally:
        set_rng_state(drawn)
    yield from parts.values()
