"""Early updates and calls of Python functions."""

import numpy as np

from graphc.base.dtypes import float32, float64
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import Evaluator
from graphc.ir.op import Trait
from graphc.ir.types import TensorType
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.effects.host import host_call
from graphc.ops.effects.state import state_write
from graphc.ops.pointwise.elementwise import mul, sub
from graphc.passes.update_order import EarlyCalls, EarlyUpdates

_TYPE = TensorType(float64, (3, 3))


def _step():
    graph = Graph("step")
    x, p, q = (
        graph.add_input(_TYPE, "x"),
        graph.add_input(_TYPE, "p", "param", "p"),
        graph.add_input(_TYPE, "q", "param", "q"),
    )
    with use(GraphDispatcher(graph)):
        first = matmul(x, q)
        second = matmul(first, p)
        state_write(p, sub(p, mul(first, 0.5)))
        state_write(q, sub(q, mul(second, 0.5)))
        graph.set_outputs([second])
    return graph


def test_an_update_stands_right_behind_what_it_is_made_of():
    graph = _step()
    result = EarlyUpdates().run(graph)
    ops = [node.op.name for node in result.graph.nodes() if not node.results[0].is_scalar_constant]
    assert ops == ["matmul", "mul", "sub", "state_write", "matmul", "mul", "sub", "state_write"]
    assert result.changed


def test_results_and_states_stay_as_they_are():
    graph = _step()
    arguments = [np.random.default_rng(i).standard_normal((3, 3)) for i in range(3)]
    found = []
    for each in (graph, EarlyUpdates().run(graph).graph):
        evaluator = Evaluator()
        found.append((evaluator.run(each, arguments), evaluator.state))
    (outputs, states), (others, moved) = found
    assert np.array_equal(outputs[0], others[0]) and all(np.array_equal(states[k], moved[k]) for k in "pq")


def test_a_graph_without_states_stays_as_it_is():
    graph = Graph("plain")
    x = graph.add_input(_TYPE, "x")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([matmul(x, x)])
    result = EarlyUpdates().run(graph)
    assert result.graph is graph and not result.changed
    assert not any(node.op.has(Trait.STATE_WRITE) for node in graph.nodes())


def _calling(results, lends=True):
    graph = Graph("calling")
    x = graph.add_input(_TYPE, "x")
    with use(GraphDispatcher(graph)):
        first = matmul(x, x)
        second = matmul(first, x)
        shares = [mul(first, 0.5), mul(second, 0.5)]
        token, *_ = host_call(graph.scalar(0.0, float32), shares[0], number=0, name="f", results=results, lends=lends)
        token, last = host_call(token, shares[1], number=1, name="f", results="f64[3,3]")
        graph.set_outputs([second, last])
    return graph


def _ops(graph):
    return [node.op.name for node in graph.nodes() if not node.results[0].is_scalar_constant]


def test_a_call_that_gives_something_stands_right_behind_what_it_is_given():
    result = EarlyCalls().run(_calling("f64[3,3]"))
    assert result.changed == 1
    assert _ops(result.graph) == ["matmul", "mul", "host_call", "matmul", "mul", "host_call"]


def test_calls_that_somebody_may_see_keep_their_order():
    graph = _calling("f64[3,3]", lends=False)
    assert EarlyCalls().run(graph).graph is graph


def test_a_graph_without_calls_of_python_stays_as_it_is():
    graph = _step()
    assert EarlyCalls().run(graph).graph is graph
