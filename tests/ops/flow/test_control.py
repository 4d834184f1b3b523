"""Facts about call: its own gradient rule is used, saved values, missing gradients, second order, decomposition."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import float64, int64
from graphc.checks.op_derivatives import check_derivatives
from graphc.errors import GradientError, ShapeError
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.flow import control
from graphc.ops.pointwise import elementwise as e
from graphc.ops.pointwise import math as m
from tests.ops.apply import gradients, run, traced
from tests.ops.one_kernel import decomposed

VECTOR = TensorType(float64, (3,))
X = np.array([0.5, -1.0, 2.0])


def graph_of(function, *types):
    graph = Graph("part")
    with dispatch.use(dispatch.GraphDispatcher(graph)):
        results = function(*(graph.add_input(t, "x") for t in types))
    graph.set_outputs(results if isinstance(results, tuple) else (results,))
    return graph


CUBE = {
    "forward": graph_of(lambda x: (m.pow(x, 3.0), x), VECTOR),
    "backward": graph_of(lambda x, g: e.mul(g, e.mul(3.0, e.mul(x, x))), VECTOR, VECTOR),
    "results": 1,
}
MIDDLE = {
    "forward": graph_of(lambda x: (m.sin(m.exp(x)), m.exp(x)), VECTOR),
    "backward": graph_of(lambda y, g: e.mul(g, e.mul(y, m.cos(y))), VECTOR, VECTOR),
    "results": 1,
}


def first(attrs):
    return lambda *x: control.call(*x, **attrs)[0]


def test_the_rule_of_its_own_is_used():
    pass_through = CUBE | {"backward": graph_of(lambda x, g: g, VECTOR, VECTOR)}
    np.testing.assert_array_equal(run(first(pass_through), X), X**3)
    np.testing.assert_array_equal(gradients(first(pass_through), X)[0], [1, 1, 1])
    np.testing.assert_allclose(gradients(first(CUBE), X)[0], 3 * X**2)


def test_a_value_computed_in_forward_may_be_saved():
    np.testing.assert_allclose(gradients(first(MIDDLE), X)[0], np.cos(np.exp(X)) * np.exp(X))


def test_second_order_through_saved_operands():
    def function(graph):
        with dispatch.use(dispatch.GraphDispatcher(graph)):
            return [first(CUBE)(*graph.inputs)]

    check_derivatives(function, [X])


def test_second_order_through_other_saved_values_is_refused():
    def function(graph):
        with dispatch.use(dispatch.GraphDispatcher(graph)):
            return [first(MIDDLE)(*graph.inputs)]

    with pytest.raises(GradientError, match="second derivative"):
        check_derivatives(function, [X])


def test_results_without_gradient_count_as_zeros():
    two = {
        "forward": graph_of(lambda x: (e.mul(x, 2.0), e.mul(x, 5.0)), VECTOR),
        "backward": graph_of(lambda g, h: e.add(e.mul(g, 2.0), e.mul(h, 5.0)), VECTOR, VECTOR),
        "results": 2,
    }
    np.testing.assert_array_equal(gradients(lambda x: control.call(x, **two)[1], X)[0], [5, 5, 5])
    np.testing.assert_array_equal(gradients(lambda x: control.call(x, **two), X)[0], [7, 7, 7])


def test_integer_operands_have_no_gradient():
    numbers = TensorType(int64, (3,))
    attrs = {
        "forward": graph_of(lambda x, n: (e.mul(x, n), n), VECTOR, numbers),
        "backward": graph_of(lambda n, g: (e.mul(g, n), n), numbers, VECTOR),
        "results": 1,
    }
    found = gradients(first(attrs), X, np.array([1, 2, 3]))
    np.testing.assert_array_equal(found[0], [1, 2, 3])
    assert found[1] is None


def test_the_backward_graph_is_checked():
    wrong = CUBE | {"backward": graph_of(lambda x, g: g, TensorType(float64, (2,)), VECTOR)}
    with pytest.raises(ShapeError, match=r"argument of the backward graph 0 has shape \[3\]"):
        run(first(wrong), X)


def test_decomposition_is_the_forward_graph():
    graph, _ = traced(first(CUBE), X)
    parts = decomposed(graph.nodes()[-1])
    assert parts is not None and [n.op.name for n in parts.nodes()] == ["constant", "pow"]


def test_inline_applies_ops_at_the_caller():
    forward = CUBE["forward"]
    graph, results = traced(lambda x: control.inline(forward, [x]), X)
    assert [n.op.name for n in graph.nodes()] == ["constant", "pow"] and results[1] is graph.inputs[0]
