"""Interpreters: evaluation, state, errors with their origin, copies and transformations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from graphc.base.dtypes import float32, float64
from graphc.base.sizes.assumptions import Assumptions, assuming
from graphc.base.sizes.named_dims import Dim, dimensions, size_of
from graphc.errors import ArgumentError, GraphcError, ShapeError
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.graph.interpret import (
    Evaluator,
    Interpreter,
    Reemitter,
    assumed,
    bind,
    copy,
    evaluate,
    live_nodes,
    settle,
)
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import print_graph
from graphc.ir.op import REGISTRY, Attrs, OpDef, Types
from graphc.ir.types import TensorType
from tests.ir.random_graphs import graphs

TEXT = """graph @g(%x: f32[2], %w: f32[2] param "fc.weight", %s: f32[2] state "count") -> (f32[2], f32[2]) {
  %h = mul(%x, %w) : f32[2]  // fc m.py:1
  %dead = exp(%x) : f32[2]
  %n = state_write(%s, %h) : f32[2]
  %y = add(%h, f32(1.0)) : f32[2]
  return %y, %n
}
"""
X, W, S = (np.array(v, np.float32) for v in ([1, 2], [3, 4], [0, 0]))


def test_evaluate():
    y, n = evaluate(parse_graph(TEXT), [X, W, S])
    assert (y.tolist(), n.tolist(), S.tolist()) == ([4, 9], [3, 8], [0, 0])


def test_evaluator_keeps_written_state():
    evaluator = Evaluator()
    evaluator.run(parse_graph(TEXT), [X, W, S])
    assert {path: array.tolist() for path, array in evaluator.state.items()} == {"count": [3, 8]}


def test_number_of_arguments():
    with pytest.raises(ArgumentError, match="@g takes 3 arguments, got 1"):
        evaluate(parse_graph(TEXT), [X])


def test_errors_name_the_line_of_the_user():
    class Refuse(Interpreter):
        def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
            raise ShapeError("no")

    with pytest.raises(ShapeError) as error:
        Refuse().run(parse_graph(TEXT), [X, W, S])
    assert error.value.origin == "fc, m.py:1"


def test_references_must_give_the_declared_type():
    with pytest.raises(GraphcError, match=r"reference of mul gave float64\(2,\), type is f32\[2\]"):
        evaluate(parse_graph(TEXT), [X.astype(np.float64), W.astype(np.float64), S])


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_copies_are_equal_and_independent(graph: Graph):
    again = copy(graph)
    assert again == graph
    assert not set(again.nodes()) & set(graph.nodes())


def test_copies_take_over_types(monkeypatch):
    inferred: list[str] = []
    infer = OpDef.result_types

    def noted(op: OpDef, types: Types, attrs: Attrs) -> Types:
        inferred.append(op.name)
        return infer(op, types, attrs)

    monkeypatch.setattr(OpDef, "result_types", noted)
    graph = Graph("f")
    x = graph.add_input(TensorType(float32, (2, 3)), "x")
    (y,) = emit(graph, REGISTRY["exp"], (x,))
    graph.set_outputs(emit(graph, REGISTRY["add"], (y, y)))
    inferred.clear()
    assert copy(graph) == graph and not inferred

    class Widened(Reemitter):
        def copy_input(self, value: Value) -> Value:
            return self.target.add_input(TensorType(float64, value.shape), value.name)

    assert Widened().transform(graph).outputs[0].dtype is float64 and inferred == ["exp", "add"]


def test_transformation_maps_values():
    class DoubleMul(Reemitter):
        def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
            if node.op.name != "mul":
                return self.copy_node(node, operands)
            half = emit(self.target, node.op, operands, {}, node.location)[0]
            return emit(self.target, REGISTRY["add"], (half, half), {}, node.location, node.results[0].name)

    graph, transformation = parse_graph(TEXT), DoubleMul("twice")
    result = transformation.transform(graph)
    assert result.name == "twice" and "%h = add(%mul, %mul) : f32[2]  // fc m.py:1" in print_graph(result)
    assert transformation.values[graph.nodes()[0].result].name == "h"
    assert evaluate(result, [X, W, S])[0].tolist() == [7, 17]


def test_live_nodes():
    graph = parse_graph(TEXT)
    live = {n.results[0].name for n in live_nodes(graph, graph.outputs[:1])}
    assert live == {"y", "f32(1.0)", "h", "x", "w"}


HEAD = "dim time = 2..512 hint 128 common [2,256]\n"
SYMBOLIC = f"""dim batch = 1..64 hint 32
{HEAD}graph @g(%x: f32[batch,time], %w: f32[4,time], %h: f32[2*time]) -> (f32[batch,4], f32[batch,time]) {{
  %y = matmul(%x, %w) {{transpose_b=true}} : f32[batch,4]
  %z = add(%x, f32(1.0)) : f32[batch,time]
  return %y, %z
}}
"""


def test_bound_dimensions_are_numbers_of_which_some_may_stay_open():
    graph = parse_graph(SYMBOLIC)
    time = graph.inputs[1].shape[1]
    fixed = print_graph(bind(graph, {"batch": 3, "time": 5}))
    assert fixed.startswith("graph @g(%x: f32[3,5], %w: f32[4,5], %h: f32[10]) -> (f32[3,4], f32[3,5]) {")
    assert print_graph(bind(graph, {"batch": 3})).startswith(f"{HEAD}graph @g(%x: f32[3,time], ")
    assert print_graph(bind(graph, {"batch": time // 2})).startswith(f"{HEAD}graph @g(%x: f32[(time // 2),time], ")
    assert bind(graph, {}) == graph
    with pytest.raises(ArgumentError, match=r"batch is 65, outside of 1\.\.64"):
        bind(graph, {"batch": 65})
    with pytest.raises(ArgumentError, match="no dimension bath"):
        bind(graph, {"bath": 1})


def test_named_dimensions_have_the_sizes_of_the_arguments():
    graph = parse_graph(SYMBOLIC)
    shapes = (3, 5), (4, 5), (10,)
    y, z = evaluate(graph, [np.ones(s, np.float32) for s in shapes])
    assert (y.tolist(), z.tolist()) == ([[5] * 4] * 3, [[2] * 5] * 3)
    with pytest.raises(ShapeError, match="dimension 1 of %w is 6, not 5 = time"):
        evaluate(graph, [np.ones(s, np.float32) for s in ((3, 5), (4, 6), (10,))])


LOOP = """dim batch = 1..64 hint 32
dim time = 2..512 hint 128
graph @g(%h: f32[batch], %x: f32[time,batch]) -> (f32[batch]) {
  %y = scan(%h, %x) {body=graph @step(%h: f32[batch], %x: f32[batch]) -> (f32[batch]) {
    %n = add(%h, %x) : f32[batch]
    return %n
  }, carries=1, sequences=1, length=time} : f32[batch]
  return %y
}
"""


def test_sub_graphs_are_bound_too():
    graph = parse_graph(LOOP)
    assert print_graph(graph) == LOOP
    _, _, fixed = LOOP.replace("batch", "2").replace("time", "3").split("\n", 2)
    assert print_graph(bind(graph, {"batch": 2, "time": 3})) == fixed
    (y,) = evaluate(graph, [np.zeros(2, np.float32), np.ones((3, 2), np.float32)])
    assert y.tolist() == [3, 3]


def test_assumptions_of_a_graph_limit_its_dimensions():
    graph = parse_graph(SYMBOLIC)
    time = graph.inputs[1].shape[1]
    assert settle(graph) is graph
    with assuming(Assumptions()) as assumptions:
        assert time % 4 == 0 and time <= 200
    graph.assumptions = tuple(assumptions.found.values())
    settled = settle(graph)
    assert str(settled).startswith(
        "dim batch = 1..64 hint 32\ndim time_4 = 1..50 hint 32\ngraph @g(%x: f32[batch,4*time_4], "
    )
    assert settled.assumptions == graph.assumptions
    with pytest.raises(ShapeError, match="dimension 1 of %x is 6, and no time_4 gives"):
        evaluate(settled, [np.ones(s, np.float32) for s in ((3, 6), (4, 6), (12,))])


NUMBER = """dim pos = 0..7 hint 4
graph @g(%x: f32[2,8], %pos: i64[] = pos) -> (f32[2,pos], i64[]) {
  %y = slice(%x) {starts=[0,0], stops=[2,pos], steps=[1,1]} : f32[2,pos]
  %n = add(%pos, %pos) : i64[]
  return %y, %n
}
"""


def test_an_input_gives_a_dimension_by_its_value():
    graph = parse_graph(NUMBER)
    assert print_graph(graph) == NUMBER and print_graph(copy(graph)) == NUMBER
    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    for pos in (0, 3, 7):
        found, twice = evaluate(graph, [x, np.array(pos)])
        np.testing.assert_array_equal(found, x[:, :pos])
        assert twice == 2 * pos
    with pytest.raises(ArgumentError, match=r"pos is 8, outside of 0\.\.7"):
        evaluate(graph, [x, np.array(8)])


def test_a_number_that_is_bound_stays_what_it_is():
    fixed = bind(parse_graph(NUMBER), {"pos": 3})
    assert "%pos: i64[] = 3" in print_graph(fixed) and not fixed.dims
    assert evaluate(fixed, [np.ones((2, 8), np.float32), np.array(3)])[0].shape == (2, 3)
    with pytest.raises(ArgumentError, match="the number %pos is 4, not 3"):
        evaluate(fixed, [np.ones((2, 8), np.float32), np.array(4)])


def test_assumptions_hold_for_the_dimensions_that_replace_those_of_the_trace():
    rows, columns, time = Dim("rows", 1, 64), Dim("columns", 1, 64), Dim("time", 1, 64)
    graph = Graph("f")
    shapes = {"x": (rows, time), "y": (columns,)}
    graph.set_outputs([graph.add_input(TensorType(float32, shape), name) for name, shape in shapes.items()])
    dims = dimensions([rows, columns, time])
    with assuming(Assumptions({dims["rows"]: 5, dims["columns"]: 5, dims["time"]: 9})) as assumptions:
        assert rows == columns and time % 4 == 1 and columns * (time // 4) < 20
    graph.assumptions = tuple(assumptions.found.values())
    settled = settle(graph)
    left, multiple = settled.dims.values()
    with assumed(settled):
        assert size_of(left) * size_of(multiple) < 20
