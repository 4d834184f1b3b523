"""Freezing: read-only params and states of a graph become constants, or watched weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.base.lazy import deferred
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, Graph, Value, input_class, input_path
from graphc.ir.graph.interpret import Reemitter
from graphc.ir.op import Trait
from graphc.passes.base import STANDARD, Pass

if TYPE_CHECKING:
    from graphc.codegen.machine.costs import Costs
    from graphc.passes.precision import Narrowed

check_precision = deferred("graphc.passes.precision:check_precision")
narrow_weights = deferred("graphc.passes.precision:narrow_weights")
optimize = deferred("graphc.passes.pipeline:optimize")


def freeze(graph: Graph, weights: Mapping[str, np.ndarray]) -> Graph:
    """Copy a graph with constants for the params and states in ``weights`` (by path), unless the graph writes to them.

    ``weights`` are neither copied nor changed, and must not change while the copy is in use.
    """
    return _Freezer(graph, weights).transform(graph)


def watch(graph: Graph, paths: Collection[str]) -> Graph:
    """Copy a graph with class ``weight`` for the params and states at these paths, unless the graph writes to them.

    Values that depend only on weights move to a separate program (see codegen.schedule.memory.prepacking).
    """
    return _Watcher(graph, paths).transform(graph)


def freeze_narrow(
    graph: Graph,
    weights: Mapping[str, np.ndarray],
    precision: str,
    passes: Sequence[Pass] = STANDARD,
    costs: Costs | None = None,
) -> Narrowed:
    """Freeze and optimize a graph, and store its large weights in one of PRECISIONS.

    Raise ArgumentError for an unknown precision, PassError.
    """
    check_precision(precision)
    by_costs = () if costs is None else (costs,)
    return narrow_weights(optimize(freeze(graph, weights), passes, *by_costs), precision)


def written_states(graph: Graph) -> set[Value]:
    """Return the params and states written by the graph."""
    return {n.operands[0] for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)}


class _Freezer(Reemitter):
    def __init__(self, graph: Graph, weights: Mapping[str, np.ndarray]):
        super().__init__()
        self.weights = weights
        self.written = written_states(graph)

    def copy_input(self, value: Value) -> Value:
        if input_class(value) == "input" or value in self.written or input_path(value) not in self.weights:
            return super().copy_input(value)
        array = self.weights[input_path(value)].view()
        array.flags.writeable = False
        return emit(self.target, CONSTANT, (), {"value": array}, name=value.name)[0]


class _Watcher(Reemitter):
    def __init__(self, graph: Graph, paths: Collection[str]):
        super().__init__()
        self.paths = paths
        self.written = written_states(graph)

    def copy_input(self, value: Value) -> Value:
        if input_class(value) == "input" or value in self.written or input_path(value) not in self.paths:
            return super().copy_input(value)
        return self.target.add_input(value.type, value.name, "weight", input_path(value))


def graph_arguments(graph: Graph, state: Mapping[str, np.ndarray], inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the arguments of a graph in order: inputs one after the other, params and states by path."""
    remaining = iter(inputs)
    return [next(remaining) if input_class(v) == "input" else state[input_path(v)] for v in graph.inputs]
