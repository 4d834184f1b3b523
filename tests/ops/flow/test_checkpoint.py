"""``later`` and ``checkpoint``, beside what tests/ops/test_every_op.py asks of all ops."""

import numpy as np

from graphc.base.dtypes import float64
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.types import TensorType
from graphc.lowering.program import lower_graph
from graphc.ops.autodiff import vjp_graph
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.effects.tap import tap
from graphc.ops.flow.checkpoint import checkpoint, kept_values, later
from graphc.ops.pointwise.math import exp, sin
from graphc.passes.pipeline import optimize

_TYPE = TensorType(float64, (3, 3))
_X = np.linspace(-1, 1, 9).reshape(3, 3)


def _graph(observed):
    """sin(exp(x)), with a tap between the two where it is observed."""
    body = Graph("body")
    x = body.add_input(_TYPE, "x")
    with use(GraphDispatcher(body)):
        middle = exp(x)
        body.set_outputs([sin(tap(middle, name="middle") if observed else middle)])
    body.set_outputs([*body.outputs, *kept_values(body)])
    graph = Graph("whole")
    x = graph.add_input(_TYPE, "x")
    with use(GraphDispatcher(graph)):
        found = checkpoint(x, body=body, results=1)
        graph.set_outputs([found[0] if observed else found])
    return vjp_graph(graph, [x], [0])


def test_the_gradient_applies_the_body_again_behind_later():
    joint = _graph(observed=False)
    assert [n.op.name for n in joint.nodes()].count("later") == 1
    optimized = optimize(joint)
    assert [n.op.name for n in optimized.nodes()].count("exp") == 2
    (_, gradient) = evaluate(optimized, [_X, np.ones((3, 3))])
    assert np.allclose(gradient, np.cos(np.exp(_X)) * np.exp(_X))


def test_what_is_observed_runs_once():
    joint = _graph(observed=True)
    optimized = optimize(joint)
    assert [n.op.name for n in optimized.nodes()].count("tap") == 1
    (_, gradient) = evaluate(optimized, [_X, np.ones((3, 3))])
    assert np.allclose(gradient, np.cos(np.exp(_X)) * np.exp(_X))


def test_what_is_made_of_later_is_computed_behind_what_it_waits_for():
    graph = Graph("order")
    x = graph.add_input(TensorType(float64, (64, 64)), "x")
    with use(GraphDispatcher(graph)):
        first = matmul(exp(x), x)
        second = exp(later(x, first))
        graph.set_outputs([matmul(first, second)])
    calls = lower_graph(optimize(graph)).calls
    assert [call.args[-1] for call in calls] == ["exp", "matmul", "exp.1", "out0"]
