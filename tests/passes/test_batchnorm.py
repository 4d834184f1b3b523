"""Tests of batch-norm folding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphc.base.dtypes import float32
from graphc.codegen.machine.costs import DEFAULT
from graphc.ir.graph.build import constant
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import copy
from graphc.ir.graph.verify import verify_graph
from graphc.ir.types import TensorType
from graphc.ops.contraction.convolution import conv
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.movement.shape import reshape
from graphc.ops.pointwise.elementwise import add, div, mul, sub
from graphc.ops.pointwise.math import rsqrt, sqrt
from graphc.passes.batchnorm import BatchNormFolding
from graphc.passes.fold import ConstantFolding
from tests.passes.check_pass import check_equal, check_pass

PLAIN = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}


def conv_norm(live, form, channels=6, size=12):
    """conv, bias, then normalization by fixed statistics; everything but x a param or state, or a constant."""
    graph = Graph("net")
    random = np.random.default_rng(0)
    x = graph.add_input(TensorType(float32, (2, 3, size, size)), "x")

    def leaf(name, *shape):
        if live:
            cls = "state" if name in ("mean", "var") else "param"
            return graph.add_input(TensorType(float32, shape), name, cls, f"bn.{name}")
        return constant(graph, random.random(shape) + 0.5, float32)

    w = leaf("w", channels, 3, 3, 3)
    vectors = [leaf(name, channels) for name in ("bias", "mean", "var", "gamma", "beta")]
    with use(GraphDispatcher(graph)):
        bias, mean, var, gamma, beta = (reshape(v, shape=(1, channels, 1, 1)) for v in vectors)
        y = add(conv(x, w, **PLAIN), bias)
        var = mul(var, var)
        if form == "rsqrt":
            z = add(mul(sub(y, mean), mul(rsqrt(add(var, 1e-5)), gamma)), beta)
        elif form == "div":
            z = add(mul(gamma, div(sub(y, mean), sqrt(add(var, 1e-5)))), beta)
        else:
            scale = mul(gamma, rsqrt(add(var, 1e-5)))
            z = add(mul(scale, y), sub(beta, mul(mean, scale)))
    graph.set_outputs([z])
    return graph


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("form", ["rsqrt", "div", "scale and shift"])
def test_convolution_with_normalization(live, form):
    graph = conv_norm(live, form)
    original = copy(graph)
    result = BatchNormFolding().run(graph)
    verify_graph(result.graph)
    check_equal(original, result.graph, rtol=1e-3, atol=1e-4)
    final = result.graph.outputs[0].node
    assert final.op is add.op and final.operands[0].node.op is conv.op
    assert final.operands[1].type.size == 6
    if not live:
        folded = ConstantFolding().run(result.graph).graph
        last = folded.outputs[0].node
        assert last.operands[1].node.op.name == "constant"
        assert last.operands[0].node.operands[1].node.op.name == "constant"
    assert BatchNormFolding().run(result.graph).changed == 0


def test_live_weights_stay_where_the_result_is_small():
    graph = conv_norm(True, "rsqrt", size=2)
    BatchNormFolding().run(graph)
    (product,) = (n for n in graph.nodes() if n.op is conv.op)
    assert product.operands[1].node.op.name == "input"


def test_matrix_product_both_ways():
    for transposed in (False, True):
        graph = Graph()
        x = graph.add_input(TensorType(float32, (64, 3)), "x")
        w = graph.add_input(TensorType(float32, (5, 3) if transposed else (3, 5)), "w", "param", "w")
        s = graph.add_input(TensorType(float32, (5,)), "s", "param", "s")
        with use(GraphDispatcher(graph)):
            graph.set_outputs([mul(s, matmul(x, w, transpose_b=transposed)), matmul(x, w, transpose_b=transposed)])
        original = copy(graph)
        assert BatchNormFolding().run(graph).changed == 1
        check_equal(original, graph)
        assert graph.outputs[0].node.op is matmul.op


def test_golden():
    check_pass(
        BatchNormFolding(),
        """
        graph @f(%x: f32[64,3], %w: f32[3,5] param "w", %s: f32[5] param "s", %t: f32[1] param "t") -> (f32[64,5]) {
          %y = matmul(%x, %w) : f32[64,5]  // fc model.py:1
          %a = sub(%y, %t) : f32[64,5]  // bn model.py:2
          %b = mul(%a, %s) : f32[64,5]  // bn model.py:3
          return %b
        }
        """,
        """
        graph @f(%x: f32[64,3], %w: f32[3,5] param "w", %s: f32[5] param "s", %t: f32[1] param "t") -> (f32[64,5]) {
          %reshape = reshape(%s) {shape=[1,5]} : f32[1,5]  // fc model.py:1
          %mul = mul(%w, %reshape) : f32[3,5]  // fc model.py:1
          %matmul = matmul(%x, %mul) : f32[64,5]  // fc model.py:1
          %mul.1 = mul(%t, %s) : f32[5]  // bn model.py:3
          %b = sub(%matmul, %mul.1) : f32[64,5]  // bn model.py:3
          return %b
        }
        """,
        1,
    )


STAYS = {
    "a scale that depends on the input": '%x: f32[64,3], %w: f32[3,5] param "w", %s: f32[5]',
    "weights that depend on the input": '%x: f32[64,3], %w: f32[3,5], %s: f32[5] param "s"',
    "a scale per row": '%x: f32[64,3], %w: f32[3,5] param "w", %s: f32[64,1] param "s"',
}


@pytest.mark.parametrize("inputs", STAYS.values(), ids=STAYS.keys())
def test_stays(inputs):
    check_pass(
        BatchNormFolding(),
        f"""
        graph @f({inputs}) -> (f32[64,5]) {{
          %y = matmul(%x, %w) : f32[64,5]
          %a = mul(%y, %s) : f32[64,5]
          return %a
        }}
        """,
    )


@pytest.mark.parametrize("function", [mul, div])
@pytest.mark.parametrize(
    ("scale", "folded"),
    [(2.0, True), (1e-4, True), (1e4, True), (np.inf, False), (np.nan, False), (1e30, False), (1e-30, False)],
)
@pytest.mark.parametrize("shape", [(), (5,)])
def test_scales_that_leave_the_range_of_numbers_stay(function, scale: float, folded: bool, shape: tuple[int, ...]):
    graph = Graph("net")
    random = np.random.default_rng(0)
    x = graph.add_input(TensorType(float32, (3, 4)), "x")
    with use(GraphDispatcher(graph)):
        y = matmul(x, constant(graph, random.standard_normal((4, 5)), float32))
        graph.set_outputs([function(add(y, 1.0), constant(graph, np.full(shape, scale), float32))])
    before = copy(graph)
    assert bool(BatchNormFolding().run(graph).changed) == folded
    with np.errstate(all="ignore"):
        check_equal(before, graph)


@pytest.mark.parametrize("function", [mul, div])
def test_a_product_times_nothing_is_folded_and_by_nothing_is_not(function):
    graph = Graph("net")
    x = graph.add_input(TensorType(float32, (3, 4)), "x")
    with use(GraphDispatcher(graph)):
        y = matmul(x, constant(graph, np.ones((4, 5)), float32))
        graph.set_outputs([function(y, constant(graph, np.zeros(5), float32))])
    assert bool(BatchNormFolding().run(graph).changed) == (function is mul)


@pytest.mark.parametrize(("times", "folded"), [(4, True), (5, False)])
def test_how_much_larger_than_live_weights_a_result_must_be_is_given(times: int, folded: bool):
    graph = Graph("net")
    x = graph.add_input(TensorType(float32, (16, 4)), "x")
    w = graph.add_input(TensorType(float32, (4, 4)), "w", "param", "w")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([mul(matmul(x, w), constant(graph, np.full(4, 2.0), float32))])
    costs = replace(DEFAULT, rewrites=replace(DEFAULT.rewrites, scaled_weights=times))
    assert bool(BatchNormFolding(costs=costs).run(graph).changed) == folded


def test_a_product_that_is_read_twice_stays():
    check_pass(
        BatchNormFolding(),
        """
        graph @f(%x: f32[64,3], %w: f32[3,5] param "w", %s: f32[5] param "s") -> (f32[64,5], f32[64,5]) {
          %y = matmul(%x, %w) : f32[64,5]
          %a = mul(%y, %s) : f32[64,5]
          return %a, %y
        }
        """,
    )
