"""Tests of constant folding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import graphc.ops.registry  # noqa: F401  (fills REGISTRY)
from graphc.base.dtypes import dtype_of, float32
from graphc.codegen.machine.costs import DEFAULT, Costs
from graphc.ir.graph.build import constant, emit
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import copy, evaluate
from graphc.ir.op import REGISTRY, OpDef, Trait
from graphc.passes.fold import ConstantFolding
from tests.passes.check_pass import check_pass
from tests.passes.graph_text import graph_of


def test_folds_scalars_and_small_arrays():
    check_pass(
        ConstantFolding(),
        """
        graph @f(%x: f32[2]) -> (f32[2]) {
          %k = constant() {value=f32[2](1.0, 2.0)} : f32[2]
          %a = mul(f32(2.0), f32(3.0)) : f32[]
          %b = mul(%k, %a) : f32[2]
          %c = add(%x, %b) : f32[2]
          return %c
        }
        """,
        """
        graph @f(%x: f32[2]) -> (f32[2]) {
          %k = constant() {value=f32[2](1.0, 2.0)} : f32[2]
          %b = constant() {value=f32[2](6.0, 12.0)} : f32[2]
          %c = add(%x, %b) : f32[2]
          return %c
        }
        """,
        2,
    )


def test_generators_and_repeating_views_stay():
    check_pass(
        ConstantFolding(),
        """
        graph @f(%x: f32[8]) -> (f32[8], i64[8]) {
          %a = broadcast_to(f32(2.0)) {shape=[8]} : f32[8]
          %b = mul(%x, %a) : f32[8]
          %c = iota() {shape=[8], axis=0} : i64[8]
          return %b, %c
        }
        """,
    )


def folding(limit: int) -> Costs:
    """Costs by which so many bytes may become constants."""
    return replace(DEFAULT, rewrites=replace(DEFAULT.rewrites, folded_bytes=limit))


def products(shape, limit):
    """A graph with an outer product of constants, folded with a limit; the names of its ops."""
    graph = Graph()
    a = constant(graph, np.ones((shape[0], 1)), float32)
    b = constant(graph, np.ones((1, shape[1])), float32)
    (c,) = emit(graph, REGISTRY["mul"], (a, b))
    (d,) = emit(graph, REGISTRY["sum"], (c,), {"axes": (0, 1)})
    graph.set_outputs([d])
    result = ConstantFolding(costs=folding(limit)).run(graph)
    return [n.op.name for n in result.graph.nodes()], result.changed


def test_large_results_are_not_stored():
    assert products((300, 300), 1 << 20) == (["constant"] * 4, 2)
    assert products((300, 300), 1 << 10) == (["constant", "constant", "mul", "sum"], 0)


def test_large_constants_may_shrink():
    graph = Graph()
    a = constant(graph, np.ones((600, 600)), float32)
    (b,) = emit(graph, REGISTRY["exp"], (a,))
    (c,) = emit(graph, REGISTRY["sum"], (b,), {"axes": (0, 1)})
    graph.set_outputs([c])
    result = ConstantFolding(costs=folding(0)).run(graph)
    assert result.changed == 2
    np.testing.assert_allclose(result.graph.outputs[0].node.attrs["value"], 360000 * np.e, rtol=1e-6)


def test_what_at_most_doubles_is_stored():
    graph = Graph()
    a = constant(graph, np.arange(8).reshape(2, 4), dtype_of(np.int8))
    (pairs,) = emit(graph, REGISTRY["byte_pairs"], (a,), {"axis": 1})
    (wide,) = emit(graph, REGISTRY["add"], (a, constant(graph, np.ones((5, 2, 4)), dtype_of(np.int8))))
    (outer,) = emit(graph, REGISTRY["mul"], (wide, constant(graph, np.ones((3, 1, 1, 1)), dtype_of(np.int8))))
    graph.set_outputs([pairs, outer])
    result = ConstantFolding(costs=folding(0)).run(graph)
    assert result.changed == 2
    assert [v.node.op.name for v in result.graph.outputs] == ["constant", "mul"]


def test_division_by_zero_is_silent_and_effects_stay():
    check_pass(
        ConstantFolding(),
        """
        graph @f(%s: f32[] state "s") -> (f32[]) {
          %a = div(f32(1.0), f32(0.0)) : f32[]
          %w = state_write(%s, f32(2.0)) : f32[]
          return %a
        }
        """,
        """
        graph @f(%s: f32[] state "s") -> (f32[]) {
          %w = state_write(%s, f32(2.0)) : f32[]
          return f32(inf)
        }
        """,
        1,
    )


@pytest.mark.parametrize("op", [op for op in REGISTRY.values() if op.has(Trait.PURE)], ids=lambda op: op.name)
def test_what_is_folded_has_the_bits_of_eager_mode(op: OpDef):
    for sample in op.samples() if op.samples else ():
        graph = Graph("constants")
        operands = [constant(graph, a, dtype_of(a.dtype)) for a in sample.operands]
        graph.set_outputs(emit(graph, op, operands, sample.attrs))
        folded = ConstantFolding().run(copy(graph))
        for found, wanted in zip(evaluate(folded.graph, []), evaluate(graph, []), strict=True):
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(wanted).tobytes()


def test_what_has_as_many_elements_as_a_call_says_stays():
    graph = graph_of("""
        dim batch = 1..8 hint 4
        graph @g(%x: f32[batch,2]) -> (f32[batch,2]) {
          %c = constant() {value=f32[2](1.0, 2.0)} : f32[2]
          %b = broadcast_to(%c) {shape=[batch,2]} : f32[batch,2]
          %y = add(%x, %b) : f32[batch,2]
          return %y
        }""")
    assert ConstantFolding().run(graph).changed == 0
