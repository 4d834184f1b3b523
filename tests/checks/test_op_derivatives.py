"""The driver of check_op: gradients of graphs by the rules of their ops, and the comparison with differences."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import float64
from graphc.checks.op_derivatives import check_derivatives, differentiate
from graphc.errors import GradientError
from graphc.ir.graph.build import constant
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.effects.state import stop_gradient
from graphc.ops.pointwise import elementwise as e


def test_gradients_of_several_uses_add_up_and_those_of_broadcast_operands_are_summed():
    graph = Graph()
    x, y = graph.add_input(TensorType(float64, (2, 3)), "x"), graph.add_input(TensorType(float64, (3,)), "y")
    with dispatch.use(dispatch.GraphDispatcher(graph)):
        result = e.add(e.mul(x, y), x)
    seed = constant(graph, np.ones((2, 3)), float64)
    found = differentiate(graph, [(result, seed)], [x, y, seed])
    assert found[2] is None
    graph.set_outputs([v for v in found if v is not None])
    arrays = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 3.0])
    by_x, by_y = evaluate(graph, arrays)
    np.testing.assert_array_equal(by_x, [[2, 3, 4]] * 2)
    np.testing.assert_array_equal(by_y, [3, 5, 7])


def test_the_order_that_is_wrong_is_named():
    def function(wrong: bool):
        def append(graph: Graph):
            (x,) = graph.inputs
            with dispatch.use(dispatch.GraphDispatcher(graph)):
                return (e.mul(stop_gradient(x) if wrong else x, x),)

        return append

    check_derivatives(function(wrong=False), [np.array([0.5, 2.0])])
    with pytest.raises(GradientError, match="first derivative: the difference quotient along a direction is"):
        check_derivatives(function(wrong=True), [np.array([0.5, 2.0])])
