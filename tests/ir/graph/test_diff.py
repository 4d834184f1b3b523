"""Comparison of graphs by structure."""

from __future__ import annotations

from hypothesis import given, settings

from graphc.ir.graph.diff import diff_graphs, structure_keys
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import copy
from graphc.ir.graph.parse import parse_graph
from tests.ir.random_graphs import graphs

A = """graph @a(%x: f32[2], %w: f32[2] param "w") -> (f32[2]) {
  %h = add(%x, %w) : f32[2]  // fc1 m.py:1
  %e = exp(%x) : f32[2]
  %p = mul(%h, %e) : f32[2]
  %y = neg(%p) : f32[2]
  return %y
}
"""
SAME = """graph @b(%u: f32[2], %v: f32[2] param "w") -> (f32[2]) {
  %one = exp(%u) : f32[2]
  %two = add(%u, %v) : f32[2]
  %three = mul(%two, %one) : f32[2]  // elsewhere
  %four = neg(%three) : f32[2]
  return %four
}
"""


def check(a: str, b: str, expected: str) -> None:
    assert diff_graphs(parse_graph(a), parse_graph(b)) == expected


def test_names_locations_and_order_do_not_count():
    assert diff_graphs(parse_graph(A), parse_graph(SAME)) == ""


def test_a_changed_node_leaves_the_others_alone():
    """Later nodes keep their names, so only the change and its direct users differ."""
    check(
        A,
        SAME.replace("exp", "log"),
        """--- a
+++ b
@@ -1,6 +1,6 @@
 graph(%x: f32[2], %w: f32[2] param "w") -> (f32[2]) {
   %h = add(%x, %w) : f32[2]
-  %e = exp(%x) : f32[2]
-  %p = mul(%h, %e) : f32[2]
+  %+one = log(%x) : f32[2]
+  %p = mul(%h, %+one) : f32[2]
   %y = neg(%p) : f32[2]
   return %y""",
    )


def test_order_of_operands_counts():
    check(
        A,
        A.replace("mul(%h, %e)", "mul(%e, %h)"),
        """--- a
+++ b
@@ -1,6 +1,6 @@
 graph(%x: f32[2], %w: f32[2] param "w") -> (f32[2]) {
+  %e = exp(%x) : f32[2]
   %h = add(%x, %w) : f32[2]
-  %e = exp(%x) : f32[2]
-  %p = mul(%h, %e) : f32[2]
+  %p = mul(%e, %h) : f32[2]
   %y = neg(%p) : f32[2]
   return %y""",
    )


def test_attributes_paths_types_and_outputs_count():
    for change in (("exp(%x)", "neg(%x)"), ('"w"', '"v"'), ("return %y", "return %p"), ("f32[2]", "f32[3]")):
        assert diff_graphs(parse_graph(A), parse_graph(A.replace(*change)))


def test_unused_and_repeated_nodes_count():
    unused = A.replace("  return", "  %z = exp(%y) : f32[2]\n  return")
    assert diff_graphs(parse_graph(A), parse_graph(unused))
    repeated = A.replace("  %p = mul(%h, %e)", "  %e2 = exp(%x) : f32[2]\n  %p = mul(%e2, %e)")
    shared = A.replace("mul(%h, %e)", "mul(%e, %e)")
    assert diff_graphs(parse_graph(repeated), parse_graph(shared))
    assert not diff_graphs(parse_graph(repeated), parse_graph(repeated))


def test_sub_graphs_are_compared_by_structure():
    text = """graph @g(%x: f32[2]) -> (f32[2]) {
  %y = call(%x) {forward=graph @f(%a: f32[2]) -> (f32[2]) {
    %b = neg(%a) : f32[2]
    return %b
  }, backward=graph @f.grad(%a: f32[2]) -> (f32[2]) {
    return %a
  }, results=1} : f32[2]
  return %y
}"""
    assert not diff_graphs(parse_graph(text), parse_graph(text.replace("%b", "%c").replace("@f", "@h")))
    difference = diff_graphs(parse_graph(text), parse_graph(text.replace("%b = neg", "%b = exp")))
    assert "-    %1 = neg(%0) : f32[2]" in difference and "+    %1 = exp(%0) : f32[2]" in difference


def test_structure_keys_are_equal_for_equal_computations():
    a, b = parse_graph(A), parse_graph(SAME)
    assert structure_keys(a)[a.outputs[0]] == structure_keys(b)[b.outputs[0]]
    assert len(set(structure_keys(a).values())) == 6


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_a_copy_has_the_same_structure(graph: Graph):
    again = copy(graph)
    for i, value in enumerate([*again.inputs, *(r for n in again.nodes() for r in n.results)]):
        again.rename(value, f"renamed.{i}")
    assert diff_graphs(graph, again) == ""


def test_dimensions_are_compared():
    text = "dim n = 1..{} hint 4\ngraph @g(%x: f32[n]) -> (f32[n]) {{\n  return %x\n}}\n"
    a, b = (parse_graph(text.format(high)) for high in (8, 9))
    assert diff_graphs(a, a) == "" and a != b
    assert "-dim n = 1..8 hint 4\n+dim n = 1..9 hint 4" in diff_graphs(a, b)
