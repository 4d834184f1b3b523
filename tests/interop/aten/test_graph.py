"""Graphs of ATen operators: their text, and the values that nested arguments name."""

from __future__ import annotations

from graphc.interop.aten.graph import AtenGraph, Ref, Step, refs, replaced

NESTED = (Ref("a"), [1, Ref("b")], {"key": Ref("c")}, slice(None, Ref("d")), "text")


def test_values_are_found_in_nested_arguments():
    assert list(refs(NESTED)) == ["a", "b", "c", "d"]


def test_values_are_put_in_their_places():
    assert replaced(NESTED, str.upper) == ("A", [1, "B"], {"key": "C"}, slice(None, "D"), "text")


def test_a_graph_prints_a_line_a_step():
    graph = AtenGraph("main", ["x"], [Step("y", "aten.add.Tensor", (Ref("x"), 2), {"alpha": 3})], (Ref("y"),))
    assert str(graph).splitlines() == ["main(x)", "  y = aten.add.Tensor(x, 2, alpha=3)", "  return [y]"]
