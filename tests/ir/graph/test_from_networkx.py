"""Graphs to plain networkx and back: equal when nothing was edited, verified when something was."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from graphc.base.dtypes import float32
from graphc.errors import VerifyError
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.graph.parse import parse_graph
from graphc.ir.types import TensorType
from tests.ir.random_graphs import graphs

TEXT = """
graph @net(%x: f32[4], %w: f32[4] param "fc.w") -> (f32[4], f32[]) {
  %a = mul(%x, %w) : f32[4]  // fc net.py:3
  %b = add(%a, f32(1.0)) : f32[4]
  %s = sum(%b) {axes=[0], keepdims=false} : f32[]
  return %b, %s
}
"""
X, W = np.arange(4, dtype=np.float32), np.full(4, 2, np.float32)


@pytest.fixture
def plain() -> nx.MultiDiGraph:
    return parse_graph(TEXT).to_networkx()


@given(graphs())
def test_there_and_back_nothing_changes(graph: Graph):
    again = Graph.from_networkx(graph.to_networkx())
    assert again == graph
    assert [str(n.location) for n in again.nodes()] == [str(n.location) for n in graph.nodes()]


@given(graphs())
def test_the_order_of_nodes_in_networkx_does_not_matter_to_the_values(graph: Graph):
    plain = graph.to_networkx()
    inputs = [k for k, op in plain.nodes(data="op") if op == "input"]
    mixed = nx.MultiDiGraph(**plain.graph)
    for key in [*inputs, *(k for k in reversed(list(plain.nodes)) if k not in inputs)]:
        mixed.add_node(key, **plain.nodes[key])
    mixed.add_edges_from(plain.edges(keys=True, data=True))
    again = Graph.from_networkx(mixed)
    assert [v.type for v in again.outputs] == [v.type for v in graph.outputs]
    assert {v.name for n in again.nodes() for v in n.results} == {v.name for n in graph.nodes() for v in n.results}


def test_an_edit_by_networkx_is_a_graph_of_that_meaning(plain: nx.MultiDiGraph):
    plain.add_node("t", op="tanh")
    plain.remove_edge("a", "b", key=0)
    plain.add_edge("a", "t", key=0)
    plain.add_edge("t", "b", key=0)
    graph = Graph.from_networkx(plain)
    assert [n.op.name for n in graph.nodes() if n.op.name != "constant"] == ["mul", "tanh", "add", "sum"]
    np.testing.assert_allclose(evaluate(graph, [X, W])[0], np.tanh(X * W) + 1, rtol=1e-6)


def test_types_follow_from_edited_inputs(plain: nx.MultiDiGraph):
    for key in ("x", "w"):
        plain.nodes[key]["type"] = TensorType(float32, (2, 4))
    plain.nodes["s"]["attrs"] = {"axes": (0, 1), "keepdims": False}
    assert [v.shape for v in Graph.from_networkx(plain).outputs] == [(2, 4), ()]


def test_relabelled_nodes_and_algorithms_of_networkx_apply(plain: nx.MultiDiGraph):
    assert nx.immediate_dominators(plain, "a")["return"] == "b"
    assert nx.dag_longest_path_length(plain) == 4
    for data in plain.nodes.values():
        data.pop("names", None)
    graph = Graph.from_networkx(nx.relabel_nodes(plain, {"a": "product"}))
    assert graph.nodes()[0].results[0].name == "product" and len(graph) == len(parse_graph(TEXT))


def change(key: str, **data: object):
    return lambda g: g.nodes[key].update(data)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (change("a", op="mull"), r"node 'a' has the op 'mull', which is not registered\n.*mul"),
        (lambda g: g.add_node("new"), "node 'new' has no op"),
        (lambda g: g.remove_edge("x", "a", key=0), "node 'a' lacks operand 0; its edges have the keys 1"),
        (lambda g: g.remove_edge("w", "a", key=1), "node 'a': mul takes 2 operands, got 1"),
        (lambda g: g.add_edge("x", "a", key=1, result=0), "node 'a' has operand 1 twice"),
        (lambda g: g.add_edge("x", "a", key=2, result=3), "node 'a' reads result 3 of 'x', which has 1"),
        (lambda g: g.add_edges_from([("b", "a", 2, {"result": 0})]), "depends on itself"),
        (lambda g: g.add_edge("return", "a", key=2), "node 'return' returns, so nothing reads it"),
        (lambda g: g.remove_node("return"), "0 nodes have the op 'return'"),
        (change("x", type=TensorType(float32, (3,))), r"node 'a': mul: shapes \[3\] .* and \[4\]"),
        (change("x", type=None), "input 'x' has no type"),
        (change("s", attrs={"axis": 0}), "node 's': sum: unknown attribute 'axis'"),
        (change("x", attrs={"cls": "param", "path": "fc.w"}), "another input has the path 'fc.w'"),
    ],
)
def test_wrong_edits_are_refused_with_the_name_of_the_node(plain: nx.MultiDiGraph, edit, message: str):
    edit(plain)
    with pytest.raises(VerifyError, match=message):
        Graph.from_networkx(plain)


def test_what_comes_from_elsewhere_is_refused():
    with pytest.raises(VerifyError, match=r"the nodes belong to another graph(.|\n)*to_networkx"):
        Graph.from_networkx(nx.MultiDiGraph(parse_graph(TEXT).networkx()))
    with pytest.raises(VerifyError, match=r"DiGraph is not an nx\.MultiDiGraph"):
        Graph.from_networkx(nx.DiGraph())  # type: ignore[arg-type]


def test_the_tensors_of_a_trace_come_along():
    graph = parse_graph(TEXT)
    graph.bound = {"fc.w": W}
    assert Graph.from_networkx(graph.to_networkx()).bound["fc.w"] is W
