"""cond: types, constants, batches."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.dtypes import bool_, float64
from graphc.base.errors import ArgumentError
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.verify import verify_graph
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.autodiff import vjp_graph
from graphc.ops.dispatch import GraphDispatcher
from graphc.ops.flow.branch import cond
from graphc.ops.pointwise import elementwise as ew


def branch(name, apply, shape=(3,)):
    graph = Graph(name)
    x = graph.add_input(TensorType(float64, shape), "x")
    with dispatch.use(GraphDispatcher(graph)):
        graph.set_outputs([apply(x)])
    return graph


def chosen(shape=(3,)):
    graph = Graph("main")
    pred, x = graph.add_input(TensorType(bool_), "pred"), graph.add_input(TensorType(float64, shape), "x")
    with dispatch.use(GraphDispatcher(graph)):
        found = cond(pred, x, then=branch("then", lambda x: ew.mul(x, x)), otherwise=branch("no", lambda x: ew.neg(x)))
        graph.set_outputs([found])
    return graph


X = np.array([1.0, -2.0, 3.0])


def test_one_branch_is_computed_and_differentiated():
    graph = chosen()
    verify_graph(graph)
    for pred, value, slope in ((True, X * X, 2 * X), (False, -X, np.full(3, -1.0))):
        np.testing.assert_array_equal(evaluate(graph, [np.array(pred), X])[0], value)
        joint = vjp_graph(graph, [graph.inputs[1]])
        found = evaluate(joint, [np.array(pred), X, np.ones(3)])
        np.testing.assert_array_equal(found[1], slope)
        second = vjp_graph(joint, [joint.inputs[1]], [1])
        found = evaluate(second, [np.array(pred), X, np.ones(3), np.ones(3)])
        np.testing.assert_array_equal(found[-1], np.full(3, 2.0 if pred else 0.0))


def test_the_text_parses_back():
    assert str(parse_graph(str(chosen()))) == str(chosen())


def test_branches_that_differ_are_refused():
    graph = Graph("main")
    pred, x = graph.add_input(TensorType(bool_), "pred"), graph.add_input(TensorType(float64, (3,)), "x")
    with dispatch.use(GraphDispatcher(graph)):
        two = branch("two", lambda x: x)
        two.set_outputs([two.inputs[0], two.inputs[0]])
        with pytest.raises(ArgumentError, match="give 1 and 2 results"):
            cond(pred, x, then=branch("then", lambda x: x), otherwise=two)


@pytest.mark.parametrize("batched", [False, True])
def test_batches(batched):
    f = lambda p, x: gc.cond(p, lambda x: x * x, lambda x: -x, (x,))  # noqa: E731
    x = gc.tensor(np.stack([X, 2 * X]))
    pred = gc.tensor([True, False]) if batched else gc.tensor(True)
    run = gc.vmap(f, in_dims=(0 if batched else None, 0))
    expected = np.stack([X * X, -2 * X]) if batched else np.stack([X * X, 4 * X * X])
    np.testing.assert_array_equal(run(pred, x).numpy(), expected)
