"""Values that are computed a second time."""

import numpy as np

from graphc.base.dtypes import float64
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.graph.verify import verify_graph
from graphc.ir.types import TensorType
from graphc.lowering.program import lower_graph
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.movement.shape import transpose
from graphc.ops.pointwise.elementwise import mul
from graphc.ops.pointwise.math import exp, sin
from graphc.passes.dce import DeadCodeElimination
from graphc.passes.pipeline import optimize
from graphc.recompute.rewrite import recompute

_TYPE = TensorType(float64, (32, 32))


def _graph():
    """A chain whose middle is read at the beginning and at the end."""
    graph = Graph("chain")
    x = graph.add_input(_TYPE, "x")
    with use(GraphDispatcher(graph)):
        a = exp(x)
        b = sin(a)
        c = matmul(b, x)
        d = matmul(c, x)
        e = matmul(mul(d, b), transpose(a, permutation=(1, 0)))
        graph.set_outputs([e])
    return graph


def _again(names):
    graph = _graph()
    place = {node: i for i, node in enumerate(graph.nodes())}
    chosen = [node for node in graph.nodes() if node.op.name in names]
    return graph, recompute(graph, place, 3, chosen, lambda value: value.node.op.name == "matmul")


def test_late_readers_get_a_second_computation_of_the_same_value():
    graph, result = _again({"exp", "sin"})
    verify_graph(result)
    ops = [node.op.name for node in result.nodes()]
    assert ops == ["exp", "sin", "matmul", "matmul", "later", "exp", "sin", "mul", "transpose", "matmul"]
    x = np.random.default_rng(0).standard_normal((32, 32))
    assert np.array_equal(evaluate(graph, [x])[0], evaluate(result, [x])[0])


def test_what_is_kept_is_read_where_it_lies():
    _, result = _again({"sin"})
    ops = [node.op.name for node in result.nodes()]
    assert ops.count("exp") == 1 and ops.count("sin") == 2 and ops.count("later") == 1


def test_the_pipeline_does_not_merge_the_two():
    _, result = _again({"exp", "sin"})
    optimized = optimize(DeadCodeElimination().run(result).graph)
    ops = [node.op.name for node in optimized.nodes()]
    assert ops.count("exp") == 2 and ops.count("sin") == 2
    calls = [call.values for call in lower_graph(optimized).calls]
    (first,) = (i for i, values in enumerate(calls) if "sin" in values)
    (second,) = (i for i, values in enumerate(calls) if "sin.again" in values)
    assert first < calls.index(("matmul.1",)) < second


def test_nothing_to_compute_again_gives_the_same_graph():
    graph, result = _again(set())
    assert str(graph) == str(result)
