"""Facts about state: a write is seen after the call, gradients flow to the value only, or not at all."""

from __future__ import annotations

import numpy as np

from graphc.base.dtypes import float64
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import Evaluator
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.effects import state
from graphc.ops.pointwise.elementwise import add, mul
from tests.ops.apply import gradients


def test_the_written_value_is_the_state_after_the_call():
    graph = Graph("count")
    counter = graph.add_input(TensorType(float64, (2,)), "counter", "state", "model.counter")
    with dispatch.use(dispatch.GraphDispatcher(graph)):
        graph.set_outputs([state.state_read(counter), state.state_write(counter, add(counter, 1.0))])
    evaluator = Evaluator()
    before = np.array([1.0, 5.0])
    first, second = evaluator.run(graph, [before])
    np.testing.assert_array_equal(first, [1, 5])
    np.testing.assert_array_equal(second, [2, 6])
    np.testing.assert_array_equal(evaluator.state["model.counter"], [2, 6])
    np.testing.assert_array_equal(before, [1, 5])


def test_the_gradient_of_a_write_goes_to_the_value():
    found = gradients(lambda s, x: state.state_write(s, mul(x, 3.0)), np.ones(2), np.ones(2))
    assert found[0] is None
    np.testing.assert_array_equal(found[1], [3, 3])


def test_stop_gradient():
    assert gradients(lambda x: mul(state.stop_gradient(x), 2.0), np.ones(2)) == [None]
    x = np.array([3.0])
    np.testing.assert_array_equal(gradients(lambda v: mul(v, state.stop_gradient(v)), x)[0], x)


def test_a_gradient_is_led_elsewhere():
    x, value = np.array([[1.0], [np.nan]]), np.array([3.0, np.inf])
    found = gradients(lambda a, b: mul(state.straight_through(mul(a, 3.0), b), 5.0), x, value)
    np.testing.assert_array_equal(found[0], [[30], [30]])
    assert found[1] is None
