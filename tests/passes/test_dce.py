"""Tests of dead code elimination."""

from __future__ import annotations

import pytest

from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph
from graphc.ops.effects.host import TOKEN
from graphc.ops.flow.control import call
from graphc.passes.dce import DeadCodeElimination
from tests.passes.check_pass import check_pass


def test_removes_chains_that_nothing_needs():
    check_pass(
        DeadCodeElimination(),
        """
        graph @f(%x: f32[4], %unused: f32[2]) -> (f32[4]) {
          %a = exp(%x) : f32[4]
          %b = sin(%a) : f32[4]
          %c = mul(%b, f32(2.0)) : f32[4]
          return %a
        }
        """,
        """
        graph @f(%x: f32[4], %unused: f32[2]) -> (f32[4]) {
          %a = exp(%x) : f32[4]
          return %a
        }
        """,
        3,
    )


def test_effects_and_what_they_need_stay():
    check_pass(
        DeadCodeElimination(),
        """
        graph @f(%x: f32[4], %s: f32[4] state "running") -> (f32[4]) {
          %a = exp(%x) : f32[4]
          %b = add(%s, %a) : f32[4]
          %w = state_write(%s, %b) : f32[4]
          %c = sin(%x) : f32[4]
          %t = tap(%c) {name="layer"} : f32[4]
          return %x
        }
        """,
    )


@pytest.mark.parametrize("ordered", [False, True])
def test_a_call_of_a_sub_graph_stays_where_it_calls_python(ordered):
    body = Graph("body")
    body.set_outputs([body.add_input(TOKEN, "token")])
    graph = Graph("f")
    token = graph.add_input(TOKEN, "token")
    emit(graph, call.op, [token], {"forward": body, "backward": body, "results": 1, "ordered": ordered})
    graph.set_outputs([token])
    result = DeadCodeElimination().run(graph)
    assert result.changed == (0 if ordered else 1)
