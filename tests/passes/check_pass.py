"""Runs a pass on the text of a graph: golden text, count of changes, valid IR, equal numbers on random inputs."""

from __future__ import annotations

import textwrap

import numpy as np

from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import Evaluator, bind, copy
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import print_graph
from graphc.ir.graph.verify import verify_graph
from graphc.passes.base import Pass


def random_arguments(graph: Graph, seed: int = 0) -> list[np.ndarray]:
    """One array per input: floats around 0, small integers, booleans."""
    random = np.random.default_rng(seed)
    result = []
    for value in graph.inputs:
        if value.dtype.kind == "f":
            array = random.standard_normal(value.shape)
        else:
            array = random.integers(0, 2 if value.dtype.kind == "b" else 7, value.shape)
        result.append(array.astype(value.dtype.numpy))
    return result


def check_equal(before: Graph, after: Graph, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Both graphs have the same inputs, outputs and effects, and compute the same from random numbers, whatever sizes
    named dimensions have."""
    assert [(v.name, v.type) for v in before.inputs] == [(v.name, v.type) for v in after.inputs]
    if before.dims:
        for choose in (lambda d: d.low, lambda d: d.hint, lambda d: d.high):
            sizes = {name: choose(d) for name, d in before.dims.items()}
            there = {name: size for name, size in sizes.items() if name in after.dims}
            check_equal(bind(before, sizes), bind(after, there), rtol, atol)
        return
    arguments = random_arguments(before)
    left, right = Evaluator(), Evaluator()
    expected, got = left.run(before, arguments), right.run(after, arguments)
    assert len(got) == len(expected) and left.state.keys() == right.state.keys()
    pairs = [*zip(got, expected, strict=True), *((right.state[k], left.state[k]) for k in left.state)]
    for a, b in pairs:
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def check_pass(run: Pass, before: str, after: str | None = None, changed: int | None = None) -> Graph:
    """Applies a pass to a graph's text and returns the result.

    ``after`` is the expected text (None: the graph must stay as it is), ``changed`` the expected count (when given).
    Running the pass on its own result must change nothing.
    """
    graph = parse_graph(textwrap.dedent(before).strip() + "\n")
    original = copy(graph)
    result = run.run(graph)
    verify_graph(result.graph)
    assert print_graph(result.graph) == textwrap.dedent(before if after is None else after).strip() + "\n"
    if after is None:
        assert result.changed == 0
    else:
        assert result.changed if changed is None else result.changed == changed
    check_equal(original, result.graph)
    again = run.run(copy(result.graph))
    assert again.changed == 0 and print_graph(again.graph) == print_graph(result.graph)
    return result.graph
