"""Tests of decomposition: convolutions with padding, gradients, calls, and what is dropped."""

from __future__ import annotations

import numpy as np
import pytest

import graphc.ops.registry  # noqa: F401  (fills REGISTRY)
from graphc.base.dtypes import dtype_of, float32
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import copy, evaluate
from graphc.ir.graph.verify import verify_graph
from graphc.ir.op import REGISTRY, Trait
from graphc.ir.types import TensorType
from graphc.ops.flow.loop import scan
from graphc.passes.decompose import Decompose
from tests.passes.check_pass import check_equal, check_pass
from tests.passes.graph_text import graph_of

COMPOSED = [op.name for op in REGISTRY.values() if op.decompose is not None]


@pytest.mark.parametrize("name", COMPOSED)
def test_every_sample_of_every_composed_op(name):
    op = REGISTRY[name]
    for sample in op.samples():
        graph = Graph()
        inputs = [graph.add_input(TensorType(dtype_of(a.dtype), a.shape), "x") for a in sample.operands]
        graph.set_outputs(emit(graph, op, inputs, sample.attrs))
        expected = evaluate(graph, sample.operands)
        result = Decompose().run(graph)
        verify_graph(result.graph)
        for node in result.graph.nodes():
            has_rule = node.op.lower or node.op.lower_nest or node.op.has(Trait.GENERATOR)
            assert has_rule or node.op is scan.op, node
        for got, want in zip(evaluate(result.graph, sample.operands), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        assert Decompose().run(result.graph).changed == 0


def test_padding_becomes_an_op():
    check_pass(
        Decompose(),
        """
        graph @f(%x: f32[1,2,4,4], %w: f32[3,2,3,3]) -> (f32[1,3,4,2]) {
          %y = conv(%x, %w) {stride=[1,1], padding=[[1,1],[0,0]], dilation=[1,1]} : f32[1,3,4,2]  // c model.py:2
          return %y
        }
        """,
        """
        graph @f(%x: f32[1,2,4,4], %w: f32[3,2,3,3]) -> (f32[1,3,4,2]) {
          %pad = pad(%x) {low=[0,0,1,0], high=[0,0,1,0], interior=[0,0,0,0]} : f32[1,2,6,4]  // c model.py:2
          %y = conv(%pad, %w) {stride=[1,1], padding=[[0,0],[0,0]], dilation=[1,1]} : f32[1,3,4,2]  // c model.py:2
          return %y
        }
        """,
        1,
    )


def strided(kernel: int, dilation: int = 1) -> Graph:
    """The gradient of a convolution with stride 2 of six elements, decomposed and checked."""
    count = (6 - dilation * (kernel - 1)) // 2 + 1
    text = f"""
        graph @f(%g: f32[1,3,{count}], %w: f32[3,2,{kernel}]) -> (f32[1,2,6]) {{
          %y = conv_grad_input(%g, %w) {{size=[6], stride=[2], padding=[[1,0]], dilation=[{dilation}]}} : f32[1,2,6]
          return %y
        }}"""
    graph = graph_of(text)
    result = Decompose().run(copy(graph)).graph
    verify_graph(result)
    check_equal(graph, result)
    return result


def shapes_of(graph: Graph, op: str) -> list[tuple[int, ...]]:
    return [n.result.shape for n in graph.nodes() if n.op.name == op]


def test_gradient_of_a_strided_convolution_puts_neighbours_side_by_side():
    """Results at even and odd places are channels of one convolution by two taps."""
    graph = strided(3)
    assert shapes_of(graph, "conv") == [(1, 4, 4)]
    assert all(not any(n.attrs["interior"]) for n in graph.nodes() if n.op.name == "pad")


def test_one_tap_reaches_every_second_result():
    graph = strided(1)
    assert shapes_of(graph, "conv") == [(1, 2, 4)]
    assert [n.attrs["interior"] for n in graph.nodes() if n.op.name == "pad"] == [(0, 0, 1)]


def test_dilation_with_a_stride_spreads_the_gradient():
    graph = strided(3, 2)
    assert shapes_of(graph, "conv") == [(1, 2, 6)]


def test_cuts_and_reads_of_state_are_dropped():
    check_pass(
        Decompose(),
        """
        graph @f(%x: f32[4], %s: f32[4] state "running") -> (f32[4]) {
          %r = state_read(%s) : f32[4]
          %c = stop_gradient(%x) : f32[4]
          %y = mul(%r, %c) : f32[4]
          return %y
        }
        """,
        """
        graph @f(%x: f32[4], %s: f32[4] state "running") -> (f32[4]) {
          %y = mul(%s, %x) : f32[4]
          return %y
        }
        """,
        2,
    )


def test_a_call_is_inlined_and_gone():
    def sub_graph(name, inputs, build):
        graph = Graph(name)
        values = [graph.add_input(TensorType(float32, (3,)), "x") for _ in range(inputs)]
        graph.set_outputs(build(graph, *values))
        return graph

    forward = sub_graph("forward", 1, lambda g, x: (emit(g, REGISTRY["exp"], (x,))[0], x))
    backward = sub_graph("backward", 2, lambda g, x, h: emit(g, REGISTRY["mul"], (x, h)))
    graph = Graph()
    x = graph.add_input(TensorType(float32, (3,)), "x")
    attrs = {"forward": forward, "backward": backward, "results": 1}
    graph.set_outputs(emit(graph, REGISTRY["call"], (x,), attrs)[:1])
    result = Decompose().run(graph).graph
    assert [n.op.name for n in result.nodes()] == ["exp"]
    np.testing.assert_allclose(evaluate(result, [np.ones(3, np.float32)])[0], np.exp(np.ones(3)), rtol=1e-6)
