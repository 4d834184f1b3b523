"""Complex values become pairs: arguments and results keep their types, loops and branches take two for one."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.base.dtypes import complex64, float32
from graphc.base.errors import GraphcError
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import print_graph
from graphc.ir.graph.verify import verify_graph
from graphc.ir.types import TensorType
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.pointwise.elementwise import add, mul
from graphc.ops.pointwise.math import exp
from graphc.ops.selection.order import rank
from graphc.passes.split_complex import SplitComplex
from tests.tensors.against_torch import numbers

X = numbers(3, dtype=np.complex64)


def graph_of(function, *types: TensorType) -> Graph:
    graph = Graph("main")
    inputs = [graph.add_input(t, f"x{i}") for i, t in enumerate(types)]
    with use(GraphDispatcher(graph)):
        graph.set_outputs([function(*inputs)])
    return graph


def test_only_memory_of_arguments_and_results_is_complex():
    graph = graph_of(lambda x: exp(add(mul(x, 2j), 1)), TensorType(complex64, (3,)))
    (expected,) = evaluate(graph, [X])
    result = SplitComplex().run(graph)
    verify_graph(result.graph)
    assert result.changed == 5
    inner = [v for n in result.graph.nodes() for v in n.results if v.dtype is complex64]
    assert inner == list(result.graph.outputs)
    np.testing.assert_allclose(evaluate(result.graph, [X])[0], expected, rtol=1e-5)


def test_real_graphs_are_left_alone():
    graph = graph_of(exp, TensorType(float32, (3,)))
    result = SplitComplex().run(graph)
    assert result.graph is graph and result.changed == 0


def test_complex_constants_are_text():
    graph = graph_of(lambda x: mul(x, 0.5 - 2j), TensorType(complex64, (3,)))
    text = print_graph(graph)
    assert "c64(0.5 -2.0)" in text and parse_graph(text) == graph


def test_an_op_without_order_is_refused_by_its_type():
    with pytest.raises(GraphcError, match="complex"):
        graph_of(lambda x: rank(x, axis=0), TensorType(complex64, (3,)))


def test_loops_and_branches_carry_complex_values():
    def spiral(x):
        def step(z, turn):
            return z * turn + 0.5j, z.abs()

        return graphc.scan(step, x[0] * 1, x)

    def either(x):
        return graphc.cond(x.real.sum() > 0, lambda z: z * 1j, lambda z: z.conj(), (x,))

    for function in (spiral, either):
        eager, compiled = function(graphc.tensor(X)), graphc.compile(function)(graphc.tensor(X))
        for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (eager, compiled)), strict=True):
            np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-5)


def test_a_while_loop_carries_complex_values():
    def escape(z):
        return graphc.while_loop(
            lambda state: (state[0].abs() < 2.0) & (state[1] < 50),
            lambda state: (state[0] * state[0] + 0.4, state[1] + 1),
            (z, graphc.tensor(0)),
        )

    eager, compiled = escape(graphc.tensor(0.1j)), graphc.compile(escape)(graphc.tensor(0.1j))
    assert int(eager[1]) == int(compiled[1])
    np.testing.assert_allclose(compiled[0].numpy(), eager[0].numpy(), rtol=1e-4)
