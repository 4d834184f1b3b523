"""Derivatives of one op against finite differences, by a small reverse-mode driver of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphc.base.dtypes import layout_of
from graphc.base.errors import GradientError
from graphc.ir.graph.build import constant
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.graph.interpret import evaluate
from graphc.ir.types import TensorType
from graphc.ops import dispatch, elementwise
from graphc.ops.reduce import sum_to

STEP = 1e-6
"""Of central differences of numbers around 1, whose rounding and truncation are about as large there."""
TOLERANCE = 1e-6
"""Relative to the sum of all gradients."""


def array_type(array: np.ndarray) -> TensorType:
    """The type of a numpy array."""
    return TensorType(layout_of(array.dtype), array.shape)


def differentiate(graph: Graph, seeds: Sequence[tuple[Value, Value]], wrt: Sequence[Value]) -> list[Value | None]:
    """Appends the gradients of ``sum(seed * value)`` with respect to ``wrt``; None where nothing depends on one."""
    gradients: dict[Value, Value] = {}

    def accumulate(value: Value, gradient: Value) -> None:
        gradient = sum_to(gradient, value.shape)
        if gradient.type != value.type:
            raise GradientError(f"the gradient of %{value.name} : {value.type} is {gradient.type}")
        known = gradients.get(value)
        gradients[value] = gradient if known is None else elementwise.add(known, gradient)

    with dispatch.use(dispatch.GraphDispatcher(graph)):
        for value, seed in seeds:
            accumulate(value, seed)
        for node in reversed(list(graph.nodes())):
            if any(r in gradients for r in node.results) and node.op.vjp is not None:
                for operand, gradient in zip(node.operands, apply_rules(node, gradients), strict=True):
                    if gradient is not None and operand.dtype.is_differentiable:
                        accumulate(operand, gradient)
    return [gradients.get(value) for value in wrt]


def apply_rules(node: Node, gradients: dict[Value, Value]) -> Sequence[Value | None]:
    """The gradients that the rules of a node give to its operands. Raises GradientError unless each has one."""
    given = tuple(gradients.get(r) for r in node.results)
    g, result = (given[0], node.results[0]) if len(given) == 1 else (given, node.results)
    rules = node.op.vjp
    if callable(rules):
        return rules(g, result, *node.operands, **node.attrs)
    if rules is None or len(rules) != len(node.operands):
        raise GradientError(f"{node.op.name}: {len(rules or ())} gradient rules for {len(node.operands)} operands")
    return [
        rule(g, result, *node.operands, **node.attrs) if rule and operand.dtype.is_differentiable else None
        for rule, operand in zip(rules, node.operands, strict=True)
    ]


def random_like(array: np.ndarray | Value, seed: int) -> np.ndarray:
    """Random numbers of size around 1."""
    return np.asarray(np.random.default_rng(seed).uniform(0.5, 1.5, array.shape) * (-1) ** seed)


def check_gradient(graph: Graph, outputs: Sequence[Value], arrays: Sequence[np.ndarray]) -> list[Value]:
    """Compares the gradients of ``outputs`` with a central difference along a random direction; returns them. Raises
    GradientError where they differ."""
    weights = [random_like(v, i) for i, v in enumerate(outputs)]
    seeds = [(v, constant(graph, w, v.dtype)) for v, w in zip(outputs, weights, strict=True)]
    varied = [i for i, v in enumerate(graph.inputs) if v.dtype.is_floating_point]
    found = differentiate(graph, seeds, [graph.inputs[i] for i in varied])
    directions = {i: random_like(arrays[i], i + 10) for i in varied}

    def at(step: float) -> float:
        moved = [a + step * directions[i] if i in directions else a for i, a in enumerate(arrays)]
        return sum(float(np.vdot(w, y)) for w, y in zip(weights, values(moved, outputs), strict=True))

    def values(arguments: Sequence[np.ndarray], wanted: Sequence[Value]) -> tuple[np.ndarray, ...]:
        graph.set_outputs(wanted)
        return evaluate(graph, arguments)

    numeric = (at(STEP) - at(-STEP)) / (2 * STEP)
    kept = [(i, v) for i, v in zip(varied, found, strict=True) if v is not None]
    arrays_of = values(arrays, [v for _, v in kept])
    exact = sum(float(np.vdot(directions[i], a)) for (i, _), a in zip(kept, arrays_of, strict=True))
    scale = 1 + sum(float(np.sum(np.abs(a))) for a in arrays_of)
    if not abs(numeric - exact) < TOLERANCE * scale:
        raise GradientError(f"the difference quotient along a direction is {numeric:.9g}, by the gradient {exact:.9g}")
    return [v for _, v in kept]


def check_derivatives(function: Callable[[Graph], Sequence[Value]], arrays: Sequence[np.ndarray]) -> None:
    """First and second derivatives of a function that appends itself to a graph of the given float64 arguments. Raises
    GradientError, naming the order, where one differs from finite differences."""
    graph = Graph("derivative")
    for i, array in enumerate(arrays):
        graph.add_input(array_type(array), f"x{i}")
    wanted = [v for v in function(graph) if v.dtype.is_floating_point]
    for order in ("first", "second"):
        try:
            wanted = check_gradient(graph, wanted, arrays) if wanted else []
        except GradientError as error:
            raise GradientError(f"{order} derivative: {error.what}", remedy=error.remedy) from error
