"""The scan op beside its samples: its gradient as graphs, what is differentiated, and the order of steps."""

from __future__ import annotations

import numpy as np
import pytest

import graphc.ops.registry  # noqa: F401  (fills REGISTRY)
from graphc.base.dtypes import float64, int64
from graphc.checks.op_derivatives import check_derivatives
from graphc.errors import AttributeValueError
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.graph.verify import verify_graph
from graphc.ir.op import REGISTRY
from graphc.ir.types import TensorType
from graphc.ops.autodiff import vjp_graph
from graphc.ops.flow.loop import scan, steps

ROW = TensorType(float64, (3,))


def products(with_count: bool = False) -> Graph:
    """carry * x * k, also stacked; a counter beside it."""
    graph = Graph("products")
    carry = graph.add_input(ROW, "carry")
    count = graph.add_input(TensorType(int64), "count") if with_count else None
    x, k = graph.add_input(ROW, "x"), graph.add_input(ROW, "k")
    (scaled,) = emit(graph, REGISTRY["mul"], (carry, x))
    (new,) = emit(graph, REGISTRY["mul"], (scaled, k))
    if count is None:
        graph.set_outputs([new, new])
        return graph
    (more,) = emit(graph, REGISTRY["add"], (count, graph.scalar(1, int64)))
    graph.set_outputs([new, more, new])
    return graph


def test_steps():
    assert list(steps(3, False)) == [0, 1, 2] and list(steps(3, True)) == [2, 1, 0]


@pytest.mark.parametrize("reverse", [False, True])
def test_against_a_loop_of_numpy(reverse: bool):
    rng = np.random.default_rng(0)
    carry, xs, k = rng.standard_normal(3), rng.standard_normal((4, 3)), rng.standard_normal(3)
    last, stacks = scan.op.evaluate([carry, xs, k], attrs(products(), reverse=reverse))
    order = slice(None, None, -1 if reverse else 1)
    expected = carry * np.cumprod(xs[order] * k, axis=0)
    np.testing.assert_allclose(last, expected[-1])
    np.testing.assert_allclose(stacks, expected[order])


def attrs(body: Graph, carries: int = 1, reverse: bool = False) -> dict:
    return scan.op.normalize({"body": body, "carries": carries, "sequences": 1, "length": 4, "reverse": reverse})


def test_the_gradient_is_a_scan_the_other_way_round():
    graph = Graph("f")
    inputs = [graph.add_input(t, n) for n, t in (("c", ROW), ("x", TensorType(float64, (4, 3))), ("k", ROW))]
    graph.set_outputs(emit(graph, scan.op, inputs, attrs(products())))
    joint = vjp_graph(graph, inputs)
    verify_graph(joint)
    scans = [n for n in joint.nodes() if n.op is scan.op]
    assert [n.attrs["reverse"] for n in scans] == [False, False, True]
    assert scans[2].attrs["carries"] == 2, "the gradient of the carry and the sum of those of k"
    assert [v.shape for v in joint.outputs[2:]] == [(3,), (4, 3), (3,)]


def test_integers_are_carried_but_not_differentiated():
    arrays = [np.random.default_rng(i).uniform(0.5, 1.5, shape) for i, shape in enumerate([(3,), (4, 3), (3,)])]

    def function(graph: Graph):
        carry, xs, k = graph.inputs
        found = emit(graph, scan.op, (carry, graph.scalar(0, int64), xs, k), attrs(products(True), carries=2))
        return [found[0], found[2]]

    check_derivatives(function, arrays)


def test_only_what_is_asked_for_is_seeded():
    graph = Graph("f")
    inputs = [graph.add_input(t, n) for n, t in (("c", ROW), ("x", TensorType(float64, (4, 3))), ("k", ROW))]
    results = emit(graph, scan.op, inputs, attrs(products()))
    graph.set_outputs(results[1:])
    joint = vjp_graph(graph, inputs[:1])
    arrays = [np.ones(3), np.full((4, 3), 2.0), np.ones(3), np.ones((4, 3))]
    np.testing.assert_allclose(evaluate(joint, arrays)[1], 2.0 + 4.0 + 8.0 + 16.0)


def test_a_step_with_an_effect():
    body = Graph("noisy")
    value = body.add_input(ROW, "c")
    body.set_outputs(emit(body, REGISTRY["tap"], (value,), {"name": "seen"}))
    graph = Graph("f")
    with pytest.raises(AttributeValueError, match="a step has an effect: tap"):
        emit(graph, scan.op, [graph.add_input(ROW, "c")], {"body": body, "carries": 1, "sequences": 0, "length": 2})
