"""Gradients against difference quotients: right rules pass, wrong ones do not, and what is held back stays so."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.checks.gradient_rules import gradient_fault, may_compare, wrong_rule
from graphc.ir.graph.parse import parse_graph
from graphc.ir.op import REGISTRY
from graphc.ops.pointwise.elementwise import mul
from tests.compiler.graphs import arguments, mlp

HELD = """
graph @held(%x: f32[4]) -> (f32[4]) {
  %e = exp(%x) : f32[4]
  %s = stop_gradient(%e) : f32[4]
  %y = mul(%s, %x) : f32[4]
  return %y
}
"""


@pytest.mark.parametrize("make", [mlp, lambda: parse_graph(HELD)])
def test_right_rules_pass(make):
    graph = make()
    assert may_compare(graph) and gradient_fault(graph, arguments(graph)) == ""


def test_a_kink_at_the_arguments_is_no_fault():
    graph = parse_graph("graph @k(%x: f32[8]) -> (f32[8]) {\n  %y = maximum(%x, f32(0.0)) : f32[8]\n  return %y\n}\n")
    assert gradient_fault(graph, [np.zeros(8, np.float32)]) == ""


def test_a_wrong_rule_is_a_fault(monkeypatch: pytest.MonkeyPatch):
    graph = parse_graph(HELD.replace("stop_gradient", "tanh"))
    monkeypatch.setitem(REGISTRY["tanh"].__dict__, "vjp", (lambda g, result, x: mul(g, result),))
    given = arguments(graph)
    assert "the difference quotient along a direction is" in gradient_fault(graph, given)
    assert wrong_rule(graph, given)


def test_what_cannot_be_differentiated_shows_nothing():
    graph = parse_graph("graph @i(%x: i64[3]) -> (i64[3]) {\n  %y = add(%x, %x) : i64[3]\n  return %y\n}\n")
    assert wrong_rule(graph, [np.arange(3)]) == ""
