"""Tests of the pipeline: whole graphs, options, and errors that name the pass."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from graphc.base.dtypes import float32, float64
from graphc.codegen.machine.costs import DEFAULT, Costs
from graphc.errors import PassError, VerifyError
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import bind, evaluate
from graphc.ir.graph.text import print_graph
from graphc.ir.graph.verify import verify_graph
from graphc.ir.types import TensorType
from graphc.ops.autodiff import vjp_graph
from graphc.ops.contraction.convolution import conv
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.effects import state
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise, math
from graphc.ops.reduction import reduce
from graphc.ops.reduction.window import max_pool
from graphc.passes.base import PassResult
from graphc.passes.dce import DeadCodeElimination
from graphc.passes.pipeline import PIPELINE, optimize
from tests.named_graphs import MODELS, arrays_for, some_sizes
from tests.passes.check_pass import check_equal

PADDED = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}
HALVES = {"kernel": (2, 2), "stride": (2, 2), "padding": ((0, 0), (0, 0)), "dilation": (1, 1)}


def network():
    """conv, relu, pool, linear, log-softmax, mean of a chosen class; f64."""
    graph = Graph("net")

    def leaf(name, *dims, cls="param"):
        return graph.add_input(TensorType(float64, dims), name, cls, name if cls != "input" else "")

    x = leaf("x", 2, 1, 8, 8, cls="input")
    w, b, v, c = leaf("conv.weight", 3, 1, 3, 3), leaf("conv.bias", 3), leaf("fc.weight", 5, 48), leaf("fc.bias", 5)
    with use(GraphDispatcher(graph)):
        h = elementwise.add(conv(x, w, **PADDED), shape.reshape(b, shape=(1, 3, 1, 1)))
        h = max_pool(elementwise.maximum(h, 0.0), **HALVES)
        h = elementwise.add(matmul(shape.reshape(h, shape=(2, 48)), v, transpose_b=True), c)
        h = elementwise.sub(h, state.stop_gradient(reduce.max(h, axes=(1,), keepdims=True)))
        h = elementwise.sub(h, math.log(reduce.sum(math.exp(h), axes=(1,), keepdims=True)))
        loss = elementwise.div(reduce.sum(h, axes=(0, 1)), -10.0)
    graph.set_outputs([loss])
    return graph


def test_forward_and_joint_graphs_keep_their_numbers():
    graph = network()
    joint = vjp_graph(graph, graph.inputs[1:], unit=True)
    for given in (graph, joint):
        text = print_graph(given)
        result = optimize(given)
        assert print_graph(given) == text
        verify_graph(result)
        check_equal(given, result, rtol=1e-9, atol=1e-10)
        assert not {"stop_gradient", "conv_grad_input", "state_read"} & {n.op.name for n in result.nodes()}


def test_the_result_is_a_fixed_point_and_deterministic():
    graph = network()
    joint = vjp_graph(graph, graph.inputs[1:], unit=True)
    once = optimize(joint)
    assert print_graph(optimize(once)) == print_graph(once)
    assert print_graph(optimize(vjp_graph(graph, graph.inputs[1:], unit=True))) == print_graph(once)


def test_outputs_keep_their_names():
    graph = network()
    result = optimize(vjp_graph(graph, graph.inputs[1:], unit=True))
    wanted = ["grad.conv.weight", "grad.conv.bias", "grad.fc.weight", "grad.fc.bias"]
    assert [v.name for v in result.outputs[1:]] == wanted


def test_second_order_through_the_pipeline():
    graph = Graph("f")
    x = graph.add_input(TensorType(float64, (3,)), "x")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([reduce.sum(math.sin(elementwise.mul(x, x)), axes=(0,))])
    first = vjp_graph(graph, [x], unit=True)
    with use(GraphDispatcher(first)):
        first.set_outputs([reduce.sum(first.outputs[1], axes=(0,))])
    second = optimize(vjp_graph(first, first.inputs, unit=True))
    at = np.array([0.3, -1.0, 2.0])
    expected = 2 * np.cos(at * at) - 4 * at * at * np.sin(at * at)
    np.testing.assert_allclose(evaluate(second, [at])[1], expected)


@dataclass(frozen=True)
class Breaks:
    """Leaves an invalid graph: an output that belongs to another one."""

    name: str = "breaks"

    def run(self, graph):
        other = Graph()
        graph.set_outputs([other.add_input(TensorType(float32, (1,)), "alien")])
        return PassResult(graph, 1)


def test_a_failing_pass_is_named(monkeypatch):
    monkeypatch.setenv("GRAPHC_VERIFY", "pass")
    with pytest.raises(PassError, match=r"pass breaks failed \(passes before it: dce\)") as caught:
        optimize(network(), [DeadCodeElimination(), Breaks(), DeadCodeElimination()])
    assert isinstance(caught.value.__cause__, VerifyError)
    assert "GRAPHC_PRINT_AFTER=all" in str(caught.value)


def test_verification_can_be_put_off(monkeypatch):
    monkeypatch.setenv("GRAPHC_VERIFY", "off")
    optimize(network(), [Breaks()])
    monkeypatch.setenv("GRAPHC_VERIFY", "stage")
    with pytest.raises(PassError, match="pass breaks failed"):
        optimize(network(), [Breaks()])


def test_print_after(monkeypatch, capsys):
    monkeypatch.setenv("GRAPHC_PRINT_AFTER", "cse")
    optimize(network())
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("// after pass") == 2 and "graph @net(" in printed.err


def test_passes_say_what_they_need_do_and_leave():
    named = {p.name: p for p in PIPELINE}
    assert [p.name for p in PIPELINE if named[p.name] != p] == [], "one name stands for two passes"
    for step in PIPELINE:
        doc = type(step).__doc__
        assert all(word in doc for word in ("Needs:", "Does:", "Leaves:", "->")), step.name


@dataclass(frozen=True)
class Told:
    """Says by what costs it chooses."""

    told: list[Costs] = field(default_factory=list, compare=False)
    costs: Costs = DEFAULT
    name: str = "told"

    def run(self, graph: Graph) -> PassResult:
        self.told.append(self.costs)
        return PassResult(graph, 0)


def test_passes_choose_by_the_costs_that_are_given():
    other = replace(DEFAULT, rewrites=replace(DEFAULT.rewrites, rematerialized_bytes=1))
    step, graph = Told(), Graph("f")
    optimize(graph, [step])
    optimize(graph, [step], other)
    assert step.told == [DEFAULT, other] and step.costs is DEFAULT


@pytest.mark.parametrize("name", MODELS)
def test_graphs_with_named_dimensions_are_optimized_once_for_all_sizes(name):
    graph = MODELS[name]()
    optimized = optimize(graph)
    assert optimized.dims == graph.dims
    for sizes in some_sizes(graph):
        fixed = bind(graph, sizes)
        arrays = arrays_for(fixed)
        alone = evaluate(optimize(fixed), arrays)
        for got, wanted in zip(evaluate(bind(optimized, sizes), arrays), alone, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=1e-5)
    assert len(optimized) == len(optimize(bind(graph, sizes)))
