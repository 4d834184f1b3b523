"""Check of a graph's gradients against difference quotients in f64, and search for a wrong gradient rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import GraphcError
from graphc.checks.wide import WideEvaluator
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.graph.interpret import Evaluator
from graphc.ops.autodiff import stops_gradient, vjp_graph

STEPS = (1e-6, 3e-6, 1e-5)
"""Steps of central differences, relative to the largest element. Each goes in its own direction, so that a kink cannot
spoil all of them.
"""
TOLERANCE = 1e-5
"""Tolerance relative to the sum of absolute products of gradient and direction."""

Arguments = Sequence[np.ndarray]


def may_compare(graph: Graph) -> bool:
    """Check whether difference quotients are meaningful.

    The bodies of loops and branches compute in their own types, whose rounding is larger than the step.
    """
    return not any(isinstance(v, Graph) for n in graph.nodes() for v in n.attrs.values())


class _FixedEvaluator(WideEvaluator):
    """Evaluates a graph with gradient-stopping values fixed to their values in another run."""

    def __init__(self, held: Mapping[Value, Any]):
        super().__init__()
        self._held = held

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Evaluate one node."""
        return [self._held[node.results[0]]] if stops_gradient(node) else super().apply(node, operands)


def gradient_fault(
    graph: Graph, arguments: Arguments, wrt: Sequence[Value] | None = None, outputs: Sequence[int] | None = None
) -> str:
    """Describe how the gradients of the outputs with respect to ``wrt`` differ from difference quotients.

    ``wrt`` defaults to all floating-point inputs. Directions are random. Return an empty text where gradients agree
    along one of them.
    """
    sources = [v for v in graph.inputs if v.dtype.is_floating_point] if wrt is None else list(wrt)
    chosen = [i for i, v in enumerate(graph.outputs) if v.dtype.is_floating_point] if outputs is None else list(outputs)
    if not sources or not chosen:
        return ""
    if not may_compare(graph):
        return ""
    joint = vjp_graph(graph, sources, chosen)
    random = np.random.default_rng(5)
    arguments = _perturbed(graph, arguments, sources, random)
    seeds = [np.asarray(random.uniform(0.5, 1.5, _shape(graph, arguments, i))) for i in chosen]
    gradients = WideEvaluator().run(joint, [*arguments, *seeds])[len(graph.outputs) :]
    worst = ""
    for step in STEPS:
        worst = _quotient_fault(graph, arguments, sources, (chosen, seeds), gradients, step)
        if not worst:
            return ""
    return worst


def _perturbed(
    graph: Graph, arguments: Arguments, sources: Sequence[Value], random: np.random.Generator
) -> list[np.ndarray]:
    """Return nearby arguments, where no element is 0 or equals another one by chance."""
    nearby = [np.asarray(a) for a in arguments]
    for i, value in enumerate(graph.inputs):
        if value in sources:
            size = 1e-3 * float(np.abs(nearby[i]).max(initial=0.0) or 1.0)
            nearby[i] = nearby[i].astype(np.float64) + size * random.uniform(-1, 1, nearby[i].shape)
    return nearby


def _shape(graph: Graph, arguments: Arguments, output: int) -> tuple[int, ...]:
    value = graph.outputs[output]
    if not graph.dims:
        return value.type.shape
    evaluator = Evaluator()
    return np.shape(evaluator.run(graph, list(arguments))[output])


def _quotient_fault(
    graph: Graph,
    arguments: Arguments,
    sources: Sequence[Value],
    targets: tuple[Sequence[int], Sequence[np.ndarray]],
    gradients: Sequence[np.ndarray],
    step: float,
) -> str:
    random = np.random.default_rng(int(1e8 * step))
    position = {v: i for i, v in enumerate(graph.inputs)}
    directions = [random.uniform(-1, 1, np.shape(arguments[position[v]])) for v in sources]
    scale = max([1.0, *(float(np.abs(arguments[position[v]]).max(initial=0.0)) for v in sources)])

    base = WideEvaluator()
    base.run(graph, list(arguments))

    def at(distance: float) -> float:
        moved: list[np.ndarray] = [np.asarray(a) for a in arguments]
        for value, direction in zip(sources, directions, strict=True):
            moved[position[value]] = moved[position[value]].astype(np.float64) + distance * direction
        outputs = _FixedEvaluator(base.values).run(graph, moved)
        return sum(float(np.vdot(seed, outputs[i])) for i, seed in zip(*targets, strict=True))

    width = step * scale
    numeric = (at(width) - at(-width)) / (2 * width)
    products = [np.asarray(g) * d for g, d in zip(gradients, directions, strict=True)]
    exact = sum(float(p.sum()) for p in products)
    size = sum(float(np.abs(p).sum()) for p in products)
    if not np.isfinite([numeric, exact]).all():
        return ""
    if abs(numeric - exact) <= TOLERANCE * max(size, abs(numeric)) + 1e-7:
        return ""
    return f"the difference quotient along a direction is {numeric:.6g}, by the gradient {exact:.6g}"


def wrong_rule(graph: Graph, arguments: Arguments) -> str:
    """Return ``gradient_fault`` of a small graph; empty where it cannot be differentiated."""
    try:
        return gradient_fault(graph, arguments)
    except GraphcError:
        return ""
