"""Graphs of ATen operators run step by step."""

from __future__ import annotations

import pytest

import graphc
from graphc.base.location import Location
from graphc.errors import GraphcError, ShapeError
from graphc.interop.aten.graph import AtenGraph, Ref, Step
from graphc.interop.aten.run import Runner, unknown

PLACE = Location("net", "model.py", 7)


def graph_of(target: str, *args: object) -> AtenGraph:
    return AtenGraph("main", ["x", "y"], [Step("found", target, args, location=PLACE)], [Ref("found"), None, 3])


def test_a_graph_is_a_function_of_its_inputs():
    run = Runner(graph_of("aten.mm.default", Ref("x"), Ref("y")))
    x = graphc.eye(2)
    result, nothing, number = run(x, x * 2)
    assert result.tolist() == [[2, 0], [0, 2]] and nothing is None and number == 3


def test_what_is_no_longer_needed_is_dropped_and_what_is_returned_is_not():
    steps = [Step("a", "aten.neg.default", (Ref("x"),)), Step("b", "aten.exp.default", (Ref("a"),))]
    result = Runner(AtenGraph("main", ["x"], steps, [Ref("a"), Ref("b")]))(graphc.zeros(1))
    assert [t.tolist() for t in result] == [[0], [1]]


def test_an_operator_without_a_rule_is_an_error_with_its_line():
    graph = graph_of("aten.no_such_thing.default", Ref("x"))
    assert [s.target for s in unknown(graph)] == ["aten.no_such_thing.default"]
    with pytest.raises(GraphcError, match=r"aten\.no_such_thing") as caught:
        Runner(graph)
    assert caught.value.origin == "net, model.py:7"


def test_an_error_says_in_which_step_it_came_up():
    with pytest.raises(ShapeError) as caught:
        Runner(graph_of("aten.mm.default", Ref("x"), Ref("y")))(graphc.eye(2), graphc.eye(3))
    assert caught.value.where is not None


def test_graphs_are_traced_with_the_lines_of_the_user():
    run = Runner(graph_of("aten.mm.default", Ref("x"), Ref("y")))
    graph = graphc.trace(run, graphc.eye(2), graphc.eye(2))
    assert {str(n.location) for n in graph.nodes() if n.op.name == "matmul"} == {"net model.py:7"}
