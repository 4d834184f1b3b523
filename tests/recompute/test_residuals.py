"""Residuals that a forward program passes to its backward program."""

from graphc.base.dtypes import float32
from graphc.codegen.machine.target import host_target
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import live_nodes
from graphc.ir.types import TensorType
from graphc.ops.autodiff import vjp_graph
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.pointwise.math import sin, tanh
from graphc.passes.pipeline import optimize
from graphc.recompute.cut import LEVELS, Second
from graphc.recompute.residuals import ResidualRecomputation, TwoParts


def _found():
    graph = Graph("chain")
    x = graph.add_input(TensorType(float32, (32, 32)), "x")
    with use(GraphDispatcher(graph)):
        value = x
        for _ in range(3):
            value = tanh(sin(matmul(value, x)))
        graph.set_outputs([value])
    joint = optimize(vjp_graph(graph, [x]))
    parts = TwoParts(joint, live_nodes(joint, joint.outputs[:1]))
    return parts, ResidualRecomputation(parts, host_target().roofline)


def test_the_forward_program_comes_first():
    parts, _ = _found()
    late = [n for n in parts.graph.nodes() if parts.place[n] > parts.until]
    assert late and not live_nodes(parts.graph, parts.graph.outputs[:1]) & set(late)


def test_elementwise_values_are_made_again_from_products():
    parts, result = _found()
    everything = result.choice(Second())
    cheap = result.choose((), [LEVELS[2]])
    assert {n.op.name for n in cheap.again} <= {"sin", "cos", "tanh", "mul", "sub"}
    assert result.choice(cheap).peak < everything.peak
    kept = {v.node.op.name for v in result.kept_values(cheap)}
    assert kept == {"matmul"} and parts.until > 0


def test_with_products_the_arguments_are_enough():
    parts, result = _found()
    second = result.choose((), [LEVELS[-1]])
    assert not result.kept_values(second) and parts.graph.outputs
    assert min(c.peak for c in result.choices(())) < result.choice(Second()).peak
