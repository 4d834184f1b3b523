"""while_loop: the op's types, text, and what refuses it."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.dtypes import float64
from graphc.base.errors import GradientError
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.verify import verify_graph
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.autodiff import vjp_graph
from graphc.ops.dispatch import GraphDispatcher
from graphc.ops.flow.while_loop import while_loop
from graphc.ops.pointwise import elementwise as ew

T = TensorType(float64)


def doubling():
    test, body, graph = Graph("test"), Graph("body"), Graph("main")
    for inner in (test, body):
        x, limit = inner.add_input(T, "x"), inner.add_input(T, "limit")
        with dispatch.use(GraphDispatcher(inner)):
            inner.set_outputs([ew.lt(x, limit) if inner is test else ew.mul(x, 2.0)])
    x, limit = graph.add_input(T, "x"), graph.add_input(T, "limit")
    with dispatch.use(GraphDispatcher(graph)):
        graph.set_outputs([while_loop(x, limit, test=test, body=body, carries=1)])
    return graph


def test_it_runs_until_the_condition_is_false():
    graph = doubling()
    verify_graph(graph)
    for start, limit, end in ((1.0, 100.0, 128.0), (3.0, 3.0, 3.0)):
        assert evaluate(graph, [np.array(start), np.array(limit)])[0] == end
    assert str(parse_graph(str(graph))) == str(graph)


def test_what_cannot_be_done_names_the_way_out():
    graph = doubling()
    with pytest.raises(GradientError, match=r"max_steps=N"):
        vjp_graph(graph, [graph.inputs[0]])


def test_entries_of_a_batch_take_steps_of_their_own():
    def power(x, base):
        return gc.while_loop(lambda s: s[0] < 10, lambda s: (s[0] * base, s[1] + 1), (x, gc.tensor(0)))

    xs, base = gc.tensor([1.0, 20.0, 5.0, 9.0]), gc.tensor(2.0)
    batched = gc.vmap(power, in_dims=(0, None))
    for run in (batched, gc.compile(batched)):
        values, steps = run(xs, base)
        assert values.tolist() == [16.0, 20.0, 10.0, 18.0]
        assert steps.tolist() == [4, 0, 1, 1]
