"""Check of one op's derivatives against finite differences, with a small reverse-mode driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphc.base.dtypes import layout_of
from graphc.base.errors import GradientError
from graphc.ir.graph.build import constant
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.graph.interpret import evaluate
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.pointwise import elementwise
from graphc.ops.reduction.reduce import sum_to

STEP = 1e-6
"""Step of central differences of numbers around 1, where rounding and truncation errors are about equal."""
TOLERANCE = 1e-6
"""Tolerance relative to the sum of all gradients."""


def array_type(array: np.ndarray) -> TensorType:
    """Return the type of a NumPy array."""
    return TensorType(layout_of(array.dtype), array.shape)


def differentiate(graph: Graph, seeds: Sequence[tuple[Value, Value]], wrt: Sequence[Value]) -> list[Value | None]:
    """Append the gradients of ``sum(seed * value)`` with respect to ``wrt``. None where nothing depends on one."""
    gradients: dict[Value, Value] = {}

    def accumulate(value: Value, gradient: Value) -> None:
        gradient = sum_to(gradient, value.shape)
        if gradient.type != value.type:
            raise GradientError(f"the gradient of %{value.name} : {value.type} is {gradient.type}")
        previous = gradients.get(value)
        gradients[value] = gradient if previous is None else elementwise.add(previous, gradient)

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
    """Return the gradients of a node's operands by its rules. Raise GradientError unless each operand has a rule."""
    gradients_of_results = tuple(gradients.get(r) for r in node.results)
    g, result = (
        (gradients_of_results[0], node.results[0])
        if len(gradients_of_results) == 1
        else (gradients_of_results, node.results)
    )
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
    """Return random numbers with absolute values from 0.5 to 1.5."""
    return np.asarray(np.random.default_rng(seed).uniform(0.5, 1.5, array.shape) * (-1) ** seed)


def check_gradient(graph: Graph, outputs: Sequence[Value], arrays: Sequence[np.ndarray]) -> list[Value]:
    """Compare the gradients of ``outputs`` with a central difference along a random direction, and return them.

    Raise GradientError where they differ.
    """
    weights = [random_like(v, i) for i, v in enumerate(outputs)]
    seeds = [(v, constant(graph, w, v.dtype)) for v, w in zip(outputs, weights, strict=True)]
    varied = [i for i, v in enumerate(graph.inputs) if v.dtype.is_floating_point]
    gradients = differentiate(graph, seeds, [graph.inputs[i] for i in varied])
    directions = {i: random_like(arrays[i], i + 10) for i in varied}

    def at(step: float) -> float:
        moved = [a + step * directions[i] if i in directions else a for i, a in enumerate(arrays)]
        return sum(float(np.vdot(w, y)) for w, y in zip(weights, values(moved, outputs), strict=True))

    def values(arguments: Sequence[np.ndarray], targets: Sequence[Value]) -> tuple[np.ndarray, ...]:
        graph.set_outputs(targets)
        return evaluate(graph, arguments)

    numeric = (at(STEP) - at(-STEP)) / (2 * STEP)
    pairs = [(i, v) for i, v in zip(varied, gradients, strict=True) if v is not None]
    arrays_of = values(arrays, [v for _, v in pairs])
    exact = sum(float(np.vdot(directions[i], a)) for (i, _), a in zip(pairs, arrays_of, strict=True))
    scale = 1 + sum(float(np.sum(np.abs(a))) for a in arrays_of)
    if not abs(numeric - exact) < TOLERANCE * scale:
        raise GradientError(f"the difference quotient along a direction is {numeric:.9g}, by the gradient {exact:.9g}")
    return [v for _, v in pairs]


def check_derivatives(function: Callable[[Graph], Sequence[Value]], arrays: Sequence[np.ndarray]) -> None:
    """Check first and second derivatives of a function that appends itself to a graph of float64 arguments.

    Raise GradientError, naming the order, where one differs from finite differences.
    """
    graph = Graph("derivative")
    for i, array in enumerate(arrays):
        graph.add_input(array_type(array), f"x{i}")
    outputs = [v for v in function(graph) if v.dtype.is_floating_point]
    for order in ("first", "second"):
        try:
            outputs = check_gradient(graph, outputs, arrays) if outputs else []
        except GradientError as error:
            raise GradientError(f"{order} derivative: {error.what}", remedy=error.remedy) from error
