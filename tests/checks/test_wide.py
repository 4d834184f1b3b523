"""Graphs computed in f64: what is rounded, what is not, and which side of a comparison is taken."""

from __future__ import annotations

import numpy as np

from graphc.checks.wide import WideEvaluator
from graphc.ir.graph.interpret import Evaluator
from graphc.ir.graph.parse import parse_graph
from tests.compiler.graphs import arguments, counter, mlp


def test_floats_are_wide_and_states_too():
    graph = counter()
    given = arguments(graph)
    wide = WideEvaluator()
    (result,) = wide.run(graph, given)
    total = given[0].astype(np.float64) + given[1]
    assert result.dtype == np.float64 and wide.state["total"].dtype == np.float64
    np.testing.assert_array_equal(result, total * [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(wide.state["total"], total)


def test_roundings_are_those_of_f32():
    graph = mlp()
    given = arguments(graph)
    narrow, wide = Evaluator().run(graph, given), WideEvaluator().run(graph, given)
    for a, b in zip(narrow, wide, strict=True):
        assert 0 < np.abs(a - b).max() < 1e-4


def test_the_same_side_of_comparisons():
    graph = parse_graph("""
graph @side(%x: f32[2], %y: f32[2]) -> (bool[2], f32[2]) {
  %s = add(%x, %y) : f32[2]
  %c = le(%s, %x) : bool[2]
  %z = where(%c, %s, %y) : f32[2]
  return %c, %z
}
""")
    given = [np.array([1.0, 1.0], np.float32), np.array([1e-9, 1.0], np.float32)]
    narrow = Evaluator()
    sides, _ = narrow.run(graph, given)
    assert sides.tolist() == [True, False]
    followed, values = WideEvaluator(narrow.values).run(graph, given)
    assert followed.tolist() == [True, False] and values[0] == 1.0 + np.float64(given[1][0])
    assert WideEvaluator().run(graph, given)[0].tolist() == [False, False]


def test_precisions_change_without_rounding():
    graph = parse_graph("""
graph @casts(%x: f64[1], %n: i64[1]) -> (f32[1], f32[1]) {
  %y = cast(%x) {dtype=f32} : f32[1]
  %m = cast(%n) {dtype=f32} : f32[1]
  return %y, %m
}
""")
    result = WideEvaluator().run(graph, [np.array([0.1]), np.array([3])])
    assert result[0][0] == 0.1 and result[1].dtype == np.float64
