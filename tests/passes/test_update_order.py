"""Early updates."""

import numpy as np

from graphc.base.dtypes import float64
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import Evaluator
from graphc.ir.op import Trait
from graphc.ir.types import TensorType
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.elementwise import mul, sub
from graphc.ops.matrix_product import matmul
from graphc.ops.state import state_write
from graphc.passes.update_order import EarlyUpdates

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
