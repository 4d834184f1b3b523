"""Sizes of graphs made small while a test holds."""

from __future__ import annotations

import time

import numpy as np

from graphc.checks.smaller_shapes import with_smaller_shapes
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.graph.parse import parse_graph
from tests.compiler.graphs import arguments, mlp


def test_all_sizes_become_one():
    graph = mlp()
    small, given = with_smaller_shapes(graph, arguments(graph), lambda g, a: True, time.monotonic() + 10)
    assert [v.shape for v in small.inputs] == [(1, 1), (1, 1), (1,)]
    assert [a.shape for a in given] == [(1, 1), (1, 1), (1,)]
    evaluate(small, given)


def test_sizes_that_matter_stay():
    graph = mlp()

    def fails(candidate: Graph, given: object) -> bool:
        return candidate.inputs[0].shape[1] >= 3

    small, given = with_smaller_shapes(graph, arguments(graph), fails, time.monotonic() + 10)
    assert [v.shape for v in small.inputs] == [(1, 3), (1, 3), (1,)]
    assert given[1].shape == (1, 3)


def test_attributes_and_constants_follow():
    graph = parse_graph("""
graph @g(%x: f32[6]) -> (f32[2,6]) {
  %k = constant() {value=f32[6](1.0, 2.0, 3.0, 4.0, 5.0, 6.0)} : f32[6]
  %a = add(%x, %k) : f32[6]
  %y = broadcast_to(%a) {shape=[2,6]} : f32[2,6]
  return %y
}
""")
    small, given = with_smaller_shapes(graph, [np.ones(6, np.float32)], lambda g, a: True, time.monotonic() + 10)
    assert evaluate(small, given)[0].tolist() == [[2.0], [2.0]]


def test_nothing_is_tried_when_time_is_up():
    graph = mlp()
    given = arguments(graph)
    assert with_smaller_shapes(graph, given, lambda g, a: True, 0.0) == (graph, given)


def test_what_raises_does_not_count():
    graph = mlp()

    def fails(candidate: Graph, given: object) -> bool:
        raise ValueError("no meaning")

    assert with_smaller_shapes(graph, arguments(graph), fails, time.monotonic() + 10)[0] is graph
