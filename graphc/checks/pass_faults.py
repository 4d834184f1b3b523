"""Reduction of a compilation's first fault: few nodes, small sizes, and the node or kernel with another value."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from graphc.checks.check import described, first_difference
from graphc.checks.pass_check import Fault, Reference, is_allowed
from graphc.checks.pass_points import (
    GRAPH,
    NATIVE,
    Point,
    after_graph_pass,
    evaluated,
    failure,
    program_runner,
    program_stops,
    run_native,
)
from graphc.checks.reduce import reduced
from graphc.checks.smaller_shapes import with_smaller_shapes
from graphc.codegen.machine.target import Target, host_target
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import Graph, Node
from graphc.ir.graph.interpret import Reemitter, solved_sizes
from graphc.ir.kernel.statements import Program
from graphc.ir.op import Trait
from graphc.passes.base import Pass
from graphc.passes.pipeline import PIPELINE

BUDGET = 20.0
"""Time limit in seconds for reducing one fault."""
Fails = Callable[[Graph, Sequence[np.ndarray]], bool]
Wrong = Callable[[Graph, Sequence[np.ndarray]], str]
"""Describes how a pass is wrong on a graph and arguments; empty where it is right."""


def named_pass(point: Point, passes: Sequence[Pass]) -> Pass:
    """Return the graph pass of a point: by index if it has that name, else the first with that name."""
    if point.number < len(passes) and passes[point.number].name == point.name:
        return passes[point.number]
    return next(p for p in passes if p.name == point.name)


def wrong_at(point: Point, passes: Sequence[Pass] = PIPELINE, target: Target | None = None) -> Wrong:
    """Return a test that describes how the pass at a point is wrong on a graph, lowered as far as needed."""
    machine = target or host_target()
    if point.kind == GRAPH:
        return lambda graph, arguments: _graph_wrong(named_pass(point, passes), graph, arguments, machine)
    return lambda graph, arguments: _program_wrong(point, graph, arguments, machine)


def _graph_wrong(step: Pass, graph: Graph, arguments: Sequence[np.ndarray], target: Target) -> str:
    reference = Reference(graph, arguments)
    return _caught(lambda: reference.wrong(evaluated(after_graph_pass(step, graph, target)[0], arguments)))


def _program_wrong(point: Point, graph: Graph, arguments: Sequence[np.ndarray], target: Target) -> str:
    """Describe how a program pass is wrong. Return an empty text also where an earlier pass fails."""
    reference = Reference(graph, arguments)
    stages = Stages(graph, target=target, passes=())
    sizes = {d.name: n for d, n in solved_sizes(graph, arguments).items()}
    run = program_runner(stages, sizes)
    for stop in program_stops(stages):
        if stop.program is None:
            return stop.text if stop.point.name == point.name else ""
        if stop.point.name == point.name:
            return _caught(lambda program=stop.program: reference.wrong(run(program, arguments)))
    return _caught(lambda: reference.wrong(run_native(stages, arguments))) if point.kind == NATIVE else ""


def _caught(run: Callable[[], str]) -> str:
    try:
        return run()
    # NOTE: any exception of a pass, or of the resulting program, is its error.
    except Exception as error:
        return failure(error)


def made_small(
    part: str, point: Point, graph: Graph, arguments: Sequence[np.ndarray], wrong: Wrong, budget: float = BUDGET
) -> Fault:
    """Reduce a fault to few nodes and small sizes within a time limit."""
    end = time.monotonic() + budget

    def fails(candidate: Graph, current: Sequence[np.ndarray] | None) -> bool:
        try:
            return current is not None and bool(wrong(candidate, current))
        # NOTE: a graph without some nodes may raise anything; it does not show the fault then.
        except Exception:
            return False

    candidate_graph, current = reduced(graph, list(arguments), fails, budget)
    candidate_graph, current = _without_links(candidate_graph, current or [], fails, end)
    small, small_arguments = with_smaller_shapes(candidate_graph, current, fails, end)
    small, small_arguments = _with_round_numbers(small, small_arguments, fails)
    what = wrong(small, small_arguments) or wrong(graph, arguments)
    return Fault(part, point, what, "", small, tuple(map(np.asarray, small_arguments)), count_nodes(small))


class _Without(Reemitter):
    """Copies a graph without one node, whose result becomes one of its operands."""

    def __init__(self, node: Node, operand: int):
        super().__init__()
        self.node, self.operand = node, operand

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Re-emit every other node."""
        return [operands[self.operand]] if node is self.node else self.copy_node(node, operands)


def _without_links(
    graph: Graph, arguments: Sequence[np.ndarray], fails: Fails, end: float
) -> tuple[Graph, Sequence[np.ndarray]]:
    """Remove irrelevant nodes between others: their readers read their operand instead."""
    tried = list(_links(graph))
    while tried and time.monotonic() < end:
        shorter = _Without(*tried.pop()).transform(graph)
        if fails(shorter, arguments):
            graph = shorter
            tried = list(_links(graph))
    return graph, arguments


def _links(graph: Graph) -> Iterator[tuple[Node, int]]:
    """Yield nodes with one result of the type of one of their operands, and the index of that operand."""
    for node in graph.nodes():
        if len(node.results) == 1 and node.op.has(Trait.PURE):
            same = [i for i, v in enumerate(node.operands) if v.type == node.results[0].type]
            yield from ((node, i) for i in same if not node.operands[i].is_scalar_constant)


def _with_round_numbers(
    graph: Graph, arguments: Sequence[np.ndarray], fails: Fails
) -> tuple[Graph, Sequence[np.ndarray]]:
    """Round arguments to two digits where the fault persists."""
    rounded = [np.round(a, 2) if np.asarray(a).dtype.kind == "f" else a for a in arguments]
    return (graph, rounded) if fails(graph, rounded) else (graph, arguments)


def count_nodes(graph: Graph) -> int:
    """Return the number of nodes of a graph, without constants of one element."""
    return sum(not (n.results and n.results[0].is_scalar_constant) for n in graph.nodes())


def place_of(fault: Fault, passes: Sequence[Pass] = PIPELINE, target: Target | None = None) -> str:
    """Describe the first node whose value differs after the pass, or the kernels of a wrong program."""
    assert fault.graph is not None
    machine = target or host_target()
    if fault.point.kind == GRAPH:
        step = named_pass(fault.point, passes)
        try:
            after = after_graph_pass(step, fault.graph, machine)[0]
        # NOTE: an exception of the pass is the fault; there is no graph with a wrong node then.
        except Exception:
            return described(last_node(fault.graph))
        node = first_difference(fault.graph, after, fault.arguments, _is_near)
        return described(node or last_node(fault.graph))
    kernels = _kernels(fault.point, fault.graph, machine)
    return described(last_node(fault.graph)) + (f"\nkernel {', '.join(kernels)}" if kernels else "")


def _is_near(actual: Any, expected: Any) -> bool:
    expected = np.asarray(expected)
    return is_allowed(np.asarray(actual), expected, expected)


def _kernels(point: Point, graph: Graph, target: Target) -> list[str]:
    """Return the names of the kernels rewritten by the pass; all kernels for the lowering."""
    before: Program | None = None
    for stop in program_stops(Stages(graph, target=target, passes=())):
        if stop.program is None:
            break
        if stop.point.name == point.name:
            unchanged = {id(k) for k in before.kernels} if before else set()
            return [f"@{k.name}" for k in stop.program.kernels if id(k) not in unchanged]
        before = stop.program
    return [f"@{k.name}" for k in before.kernels] if before else []


def last_node(graph: Graph) -> Node | None:
    """Return the node that computes the first output."""
    return next((v.node for v in graph.outputs), None) or next(reversed(list(graph.nodes())), None)
