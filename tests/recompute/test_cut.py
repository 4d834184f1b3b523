"""Minimum cuts between what is kept and what is computed again."""

import pytest

from graphc.base.dtypes import float32
from graphc.codegen.machine.target import host_target
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.pointwise.elementwise import mul
from graphc.ops.pointwise.math import exp, sin, tanh
from graphc.ops.reduction.reduce import sum as add_up
from graphc.passes.cse import CommonSubexpressionElimination
from graphc.recompute.cut import LEVELS, Recomputation, Second, _thin_borders
from graphc.recompute.lifetimes import Lifetimes


def _training(layers=6, size=64):
    """A chain of products with elementwise operations between them, and its way back."""
    graph = Graph("training")
    x = graph.add_input(TensorType(float32, (size, size)), "x")
    w = graph.add_input(TensorType(float32, (size, size)), "w", "param", "w")
    with use(GraphDispatcher(graph)):
        value, kept = x, []
        for _ in range(layers):
            product = matmul(value, w)
            value = tanh(exp(sin(product)))
            kept.append((product, exp(sin(product)), value))
        loss = add_up(value, axes=(0, 1))
        gradient = value
        for product, middle, value in reversed(kept):
            gradient = matmul(mul(mul(mul(gradient, value), middle), product), w)
        graph.set_outputs([loss, gradient])
    return CommonSubexpressionElimination().run(graph).graph


@pytest.fixture
def result():
    lifetimes = Lifetimes(_training())
    until = lifetimes.place[lifetimes.graph.outputs[0].node]
    return Recomputation(lifetimes, until, host_target().roofline)


def test_nothing_computed_again_is_the_plan_as_it_is(result):
    nothing = result.choice(Second())
    assert nothing.nanoseconds == 0 and nothing.peak >= 6 * 64 * 64 * 4


def test_the_cheapest_way_keeps_the_products_and_nothing_else(result):
    cheap = result.choose((), [LEVELS[2]])
    assert cheap.again and all(node.op.name in ("sin", "exp", "tanh", "mul") for node in cheap.again)
    kept = [v for v in result.kept_values(cheap) if v.type.size > 1]
    assert kept and all(v.node.op.name == "matmul" for v in kept)
    assert result.choice(cheap).peak < result.choice(Second()).peak


def test_more_willingness_computes_products_again_and_borders_keep_values(result):
    borders = max(result.segmentations(), key=len)
    assert borders
    whole = result.choose(borders, [LEVELS[-1]] * (len(borders) + 1))
    assert any(node.op.name == "matmul" for node in whole.again)
    assert result.choice(whole).peak < result.choice(result.choose((), [LEVELS[2]])).peak


def test_choices_offer_less_memory_for_more_time(result):
    choices = [c for borders in result.segmentations() for c in result.choices(borders)]
    least, quickest = min(choices, key=lambda c: c.peak), min(choices, key=lambda c: c.nanoseconds)
    assert least.peak < quickest.peak and quickest.nanoseconds < least.nanoseconds


def test_stretches_end_where_little_is_alive():
    assert _thin_borders([4, 4, 4, 4], [8, 1, 8, 0], 8) == (1,)
    assert _thin_borders([4, 4, 4, 4], [8, 1, 8, 0], 100) == ()
