"""Runs functions written in ops on numpy arrays, through a graph and its interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.base.dtypes import dtype_of
from graphc.checks.op_derivatives import differentiate
from graphc.ir.graph.build import constant
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.graph.interpret import evaluate
from graphc.ir.types import TensorType
from graphc.ops import dispatch


def traced(function: Callable[..., Any], *arrays: Any) -> tuple[Graph, list[Value]]:
    """Return the graph of ``function`` for arguments like the arrays, and its results as a list."""
    graph = Graph("test")
    values = [
        graph.add_input(TensorType(dtype_of(a.dtype), a.shape), f"x{i}") for i, a in enumerate(map(np.asarray, arrays))
    ]
    with dispatch.use(dispatch.GraphDispatcher(graph)):
        results = function(*values)
    return graph, list(results) if isinstance(results, tuple) else [results]


def run(function: Callable[..., Any], *arrays: Any) -> Any:
    """The value of ``function`` on arrays; a tuple when it gives several."""
    graph, results = traced(function, *arrays)
    graph.set_outputs(results)
    found = evaluate(graph, [np.asarray(a) for a in arrays])
    return found[0] if len(found) == 1 else found


def gradients(function: Callable[..., Any], *arrays: Any) -> list[np.ndarray | None]:
    """Gradients of the sum of ``function``'s results with respect to each array."""
    graph, results = traced(function, *arrays)
    seeds = [(v, constant(graph, np.ones(v.shape), v.dtype)) for v in results]
    found = differentiate(graph, seeds, graph.inputs)
    graph.set_outputs([v for v in found if v is not None])
    values = iter(evaluate(graph, [np.asarray(a) for a in arrays]))
    return [None if v is None else next(values) for v in found]
