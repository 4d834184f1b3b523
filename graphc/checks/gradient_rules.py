"""Gradients of a graph against difference quotients in f64, and the first node whose gradient rule is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import GraphcError
from graphc.compiler.wide import WideEvaluator
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.graph.interpret import Evaluator
from graphc.ops.autodiff import stops_gradient, vjp_graph

STEPS = (1e-6, 3e-6, 1e-5)
"""Of central differences, relative to the largest element; a kink that lies between the points of one does not lie
between those of all, for each goes in a direction of its own."""
TOLERANCE = 1e-5
"""Relative to the sum of what the products of gradient and direction have."""

Arguments = Sequence[np.ndarray]


def may_compare(graph: Graph) -> bool:
    """Whether gradients can be compared: the bodies of loops and branches compute in their own types, whose roundings
    are larger than what difference quotients divide by."""
    return not any(isinstance(v, Graph) for n in graph.nodes() for v in n.attrs.values())


class _Held(WideEvaluator):
    """Evaluates with what no gradient flows through as it was in another run."""

    def __init__(self, held: Mapping[Value, Any]):
        super().__init__()
        self._held = held

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Evaluates one node."""
        return [self._held[node.results[0]]] if stops_gradient(node) else super().apply(node, operands)


def gradient_fault(
    graph: Graph, arguments: Arguments, wrt: Sequence[Value] | None = None, outputs: Sequence[int] | None = None
) -> str:
    """How the gradients of the outputs with respect to ``wrt`` (all floating-point inputs) differ from difference
    quotients along random directions; empty where they do not in one of them."""
    wanted = [v for v in graph.inputs if v.dtype.is_floating_point] if wrt is None else list(wrt)
    chosen = [i for i, v in enumerate(graph.outputs) if v.dtype.is_floating_point] if outputs is None else list(outputs)
    if not wanted or not chosen:
        return ""
    if not may_compare(graph):
        return ""
    joint = vjp_graph(graph, wanted, chosen)
    random = np.random.default_rng(5)
    arguments = _beside(graph, arguments, wanted, random)
    seeds = [np.asarray(random.uniform(0.5, 1.5, _shape(graph, arguments, i))) for i in chosen]
    found = WideEvaluator().run(joint, [*arguments, *seeds])[len(graph.outputs) :]
    worst = ""
    for step in STEPS:
        worst = _quotient_fault(graph, arguments, wanted, (chosen, seeds), found, step)
        if not worst:
            return ""
    return worst


def _beside(
    graph: Graph, arguments: Arguments, wanted: Sequence[Value], random: np.random.Generator
) -> list[np.ndarray]:
    """Arguments at a place near by, where nothing is 0, or equal to something else, by chance."""
    found = [np.asarray(a) for a in arguments]
    for i, value in enumerate(graph.inputs):
        if value in wanted:
            size = 1e-3 * float(np.abs(found[i]).max(initial=0.0) or 1.0)
            found[i] = found[i].astype(np.float64) + size * random.uniform(-1, 1, found[i].shape)
    return found


def _shape(graph: Graph, arguments: Arguments, output: int) -> tuple[int, ...]:
    value = graph.outputs[output]
    if not graph.dims:
        return value.type.shape
    evaluator = Evaluator()
    return np.shape(evaluator.run(graph, list(arguments))[output])


def _quotient_fault(
    graph: Graph,
    arguments: Arguments,
    wanted: Sequence[Value],
    targets: tuple[Sequence[int], Sequence[np.ndarray]],
    found: Sequence[np.ndarray],
    step: float,
) -> str:
    random = np.random.default_rng(int(1e8 * step))
    place = {v: i for i, v in enumerate(graph.inputs)}
    directions = [random.uniform(-1, 1, np.shape(arguments[place[v]])) for v in wanted]
    scale = max([1.0, *(float(np.abs(arguments[place[v]]).max(initial=0.0)) for v in wanted)])

    base = WideEvaluator()
    base.run(graph, list(arguments))

    def at(distance: float) -> float:
        moved: list[np.ndarray] = [np.asarray(a) for a in arguments]
        for value, direction in zip(wanted, directions, strict=True):
            moved[place[value]] = moved[place[value]].astype(np.float64) + distance * direction
        outputs = _Held(base.values).run(graph, moved)
        return sum(float(np.vdot(seed, outputs[i])) for i, seed in zip(*targets, strict=True))

    width = step * scale
    numeric = (at(width) - at(-width)) / (2 * width)
    products = [np.asarray(g) * d for g, d in zip(found, directions, strict=True)]
    exact = sum(float(p.sum()) for p in products)
    size = sum(float(np.abs(p).sum()) for p in products)
    if not np.isfinite([numeric, exact]).all():
        return ""
    if abs(numeric - exact) <= TOLERANCE * max(size, abs(numeric)) + 1e-7:
        return ""
    return f"the difference quotient along a direction is {numeric:.6g}, by the gradient {exact:.6g}"


def wrong_rule(graph: Graph, arguments: Arguments) -> str:
    """``gradient_fault`` of a small graph; empty where it cannot be differentiated."""
    try:
        return gradient_fault(graph, arguments)
    except GraphcError:
        return ""
