"""Lowered programs with named dimensions, compared with their graphs size by size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import bind as bind_graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.kernel.dims import bind, dims_of_program
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Program
from graphc.ir.kernel.verify import verify_program
from graphc.lowering.program import lower_graph

ATOL = {"float32": 1e-4, "float64": 1e-12}


def random_arguments(graph: Graph, seed: int = 0) -> list[np.ndarray]:
    """Arrays for the inputs of a graph without dimensions; integers below 3."""
    generator = np.random.default_rng(seed)
    found: list[np.ndarray] = []
    for value in graph.inputs:
        dtype = value.dtype.numpy
        numbers = generator.standard_normal(value.shape) if dtype.kind == "f" else generator.integers(0, 3, value.shape)
        found.append(numbers.astype(dtype))
    return found


def compare(program: Program, graph: Graph, sizes: Mapping[str, int], arguments: Iterable[Any] | None = None) -> None:
    """Check that a program bound to sizes verifies and computes the graph's results."""
    fixed = bind_graph(graph, sizes)
    bound = bind(program, {name: sizes[name] for name in dims_of_program(program)})
    assert not dims_of_program(bound)
    verify_program(bound)
    arrays = random_arguments(fixed) if arguments is None else list(arguments)
    expected = evaluate(fixed, [a.copy() for a in arrays])
    for result, array in zip(run_program(bound, [a.copy() for a in arrays]), expected, strict=True):
        scale = max(1.0, float(np.abs(array).max(initial=0))) if array.dtype.kind == "f" else 1.0
        atol = scale * ATOL.get(array.dtype.name, 0)
        np.testing.assert_allclose(result, array, rtol=1e-4, atol=atol, err_msg=str(sizes))


def check(graph: Graph, sizes: Iterable[Mapping[str, int]]) -> Program:
    """Lowers a graph once, proves the program for all sizes, and compares it at some."""
    program = lower_graph(graph)
    verify_program(program)
    for chosen in sizes:
        compare(program, graph, chosen)
    return program
