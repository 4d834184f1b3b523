"""Tests of common subexpression elimination."""

from __future__ import annotations

import graphc as gc
from graphc.passes.cse import CommonSubexpressionElimination
from tests.passes.check_pass import check_pass


def test_merges_equal_chains_and_swapped_operands():
    check_pass(
        CommonSubexpressionElimination(),
        """
        graph @f(%x: f32[4], %y: f32[4]) -> (f32[4], f32[4], f32[4]) {
          %a = add(%x, %y) : f32[4]  // fc1 model.py:3
          %b = add(%y, %x) : f32[4]  // fc2 model.py:4
          %c = exp(%a) : f32[4]
          %d = exp(%b) : f32[4]
          %e = sub(%x, %y) : f32[4]
          %f = sub(%y, %x) : f32[4]
          %g = add(%e, %f) : f32[4]
          return %c, %d, %g
        }
        """,
        """
        graph @f(%x: f32[4], %y: f32[4]) -> (f32[4], f32[4], f32[4]) {
          %a = add(%x, %y) : f32[4]  // fc1 model.py:3
          %c = exp(%a) : f32[4]
          %e = sub(%x, %y) : f32[4]
          %f = sub(%y, %x) : f32[4]
          %g = add(%e, %f) : f32[4]
          return %c, %c, %g
        }
        """,
        2,
    )


def test_attributes_and_constants_count():
    check_pass(
        CommonSubexpressionElimination(),
        """
        graph @f(%x: f32[2,2]) -> (f32[2], f32[2], f32[2]) {
          %k = constant() {value=f32[2](1.0, 2.0)} : f32[2]
          %l = constant() {value=f32[2](1.0, 2.0)} : f32[2]
          %a = sum(%x) {axes=[0]} : f32[2]
          %b = sum(%x) {axes=[1]} : f32[2]
          %c = mul(%a, %k) : f32[2]
          %d = mul(%a, %l) : f32[2]
          return %b, %c, %d
        }
        """,
        """
        graph @f(%x: f32[2,2]) -> (f32[2], f32[2], f32[2]) {
          %k = constant() {value=f32[2](1.0, 2.0)} : f32[2]
          %a = sum(%x) {axes=[0]} : f32[2]
          %b = sum(%x) {axes=[1]} : f32[2]
          %c = mul(%a, %k) : f32[2]
          return %b, %c, %c
        }
        """,
        2,
    )


def test_effects_are_never_merged():
    check_pass(
        CommonSubexpressionElimination(),
        """
        graph @f(%x: f32[4]) -> (f32[4], f32[4]) {
          %a = tap(%x) {name="layer"} : f32[4]
          %b = tap(%x) {name="layer"} : f32[4]
          return %a, %b
        }
        """,
    )


def test_loops_merge_if_their_bodies_are_equal():
    def folds(x):
        sums = [gc.scan(lambda c, row, f=f: (f(c) + row, None), x[0], x)[0] for f in (gc.sin, gc.sin, gc.cos)]
        return tuple(sums)

    result = CommonSubexpressionElimination().run(gc.trace(folds, gc.ones(3, 2)))
    assert sum(node.op.name == "scan" for node in result.graph.nodes()) == 2
