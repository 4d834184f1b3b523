"""Nodes that depend on weights and constants alone, and nodes that are not worth storing."""

from __future__ import annotations

import numpy as np

from graphc.fusion.vertical import Reason, fuse
from graphc.passes.call_invariant import (
    MAX_NODES,
    call_invariant_nodes,
    constant_array,
    is_call_invariant,
    leaf_classes,
)
from tests.passes.graph_text import graph_of

TEXT = """
    graph @g(%x: f32[4,8], %w: f32[8] weight "w", %p: f32[8] param "p", %s: i64[2] state "r") -> (f32[4,8]) {
      %a = exp(%w) : f32[8]
      %b = mul(%a, f32(2.0)) : f32[8]
      %c = mul(%p, %b) : f32[8]
      %d = mul(%x, %b) : f32[4,8]
      %e = add(%d, %c) : f32[4,8]
      return %e
    }"""


def names(nodes) -> set[str]:
    return {n.results[0].name for n in nodes if n.operands}


def test_nodes_of_weights_and_constants_are_fixed():
    graph = graph_of(TEXT)
    assert names(call_invariant_nodes(graph)) == {"a", "b"}
    values = {v.name: v for n in graph.nodes() for v in n.results}
    assert [is_call_invariant(values[n]) for n in "abcde"] == [True, True, False, False, False]
    assert leaf_classes(values["e"]) == {"input", "weight", "param", "constant"}


def test_without_weights_nothing_is():
    assert call_invariant_nodes(graph_of(TEXT.replace(" weight ", " param "))) == set()


def test_large_results_of_small_weights_are_not_kept():
    graph = graph_of("""
        graph @g(%x: f32[1024,1024], %w: f32[1024,1] weight "w", %v: f32[1,1024] weight "v") -> (f32[1024,1024]) {
          %o = mul(%w, %v) : f32[1024,1024]
          %e = add(%x, %o) : f32[1024,1024]
          return %e
        }""")
    assert names(call_invariant_nodes(graph)) == set()


def test_long_chains_are_not_looked_into():
    lines = "".join(f"  %v{i + 1} = exp(%v{i}) : f32[8]\n" for i in range(MAX_NODES))
    head = 'graph @g(%v0: f32[8] weight "w") -> (f32[8]) {'
    graph = graph_of(f"{head}\n{lines}  return %v{MAX_NODES}\n}}")
    assert leaf_classes(graph.outputs[0]) is None and not is_call_invariant(graph.outputs[0])


def test_elements_of_constants_are_read():
    graph = graph_of("""
        graph @g(%x: f32[2]) -> (f32[], f32[2]) {
          %a = add(f32(1.0), f32(0.5)) : f32[]
          %b = mul(%a, %a) : f32[]
          %c = add(%x, %b) : f32[2]
          return %b, %c
        }""")
    constants, others = graph.outputs
    np.testing.assert_array_equal(constant_array(constants), 2.25)
    assert constant_array(others) is None


def test_chains_that_share_values_are_read_once():
    lines = "".join(f"  %v{i + 1} = mul(%v{i}, %v{i}) : f32[]\n" for i in range(MAX_NODES - 4))
    graph = graph_of(f"graph @g() -> (f32[]) {{\n  %v0 = neg(f32(1.0)) : f32[]\n{lines}  return %v{MAX_NODES - 4}\n}}")
    np.testing.assert_array_equal(constant_array(graph.outputs[0]), 1)


def test_no_kernel_holds_both():
    plan = fuse(graph_of(TEXT))
    assert [names(g.nodes) for g in plan.groups] == [{"a", "b"}, {"c"}, {"d", "e"}]
    assert {r.reason for r in plan.refusals if r.value.name == "b"} == {Reason.CALL_INVARIANT}


def test_what_depends_on_the_sizes_of_a_call_is_not():
    graph = graph_of("""
        dim time = 1..8 hint 4
        graph @g(%x: f32[time,8], %w: f32[8,8] weight "w") -> (f32[time,8]) {
          %e = exp(%w) : f32[8,8]
          %s = slice(%e) {starts=[0,0], stops=[time,8], steps=[1,1]} : f32[time,8]
          %m = sum(%s) {axes=[0], keepdims=false} : f32[8]
          %y = add(%x, %m) : f32[time,8]
          return %y
        }""")
    assert names(call_invariant_nodes(graph)) == {"e"}
    values = {v.name: v for n in graph.nodes() for v in n.results}
    assert [is_call_invariant(values[n]) for n in "esm"] == [True, False, False]
