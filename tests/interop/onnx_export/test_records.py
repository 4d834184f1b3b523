"""Records: renaming reaches into bodies, and what nothing reads is taken out."""

from __future__ import annotations

import numpy as np

from graphc.base.dtypes import float32
from graphc.interop.onnx_export.records import GraphRecord, NodeRecord, ValueRecord


def value(name: str) -> ValueRecord:
    return ValueRecord(name, float32, (2, "n"))


def node(op: str, inputs: str, outputs: str, **attrs: object) -> NodeRecord:
    return NodeRecord(op, inputs.split(), outputs.split(), dict(attrs), op)


def branching() -> GraphRecord:
    """A branch that reads ``a`` and ``w`` of the graph around it, and a node that nothing reads."""
    body = GraphRecord("then", [], [value("c")], [node("Add", "a w", "c"), node("Neg", "v", "d")])
    nodes = [node("Relu", "x", "a"), node("Exp", "x", "unread"), node("If", "p", "b", then_branch=body)]
    arrays = {name: np.ones(2, np.float32) for name in ("w", "v")}
    return GraphRecord("main", [value("x"), value("p")], [value("b")], nodes, arrays)


def test_all_graphs_are_walked():
    assert [g.name for g in branching().walk()] == ["main", "then"]


def test_names_change_in_bodies_too():
    graph = branching()
    graph.rename({"a": "relu", "c": "sum"})
    body = graph.nodes[2].attrs["then_branch"]
    assert graph.nodes[0].outputs == ["relu"]
    assert body.nodes[0].inputs == ["relu", "w"] and body.nodes[0].outputs == ["sum"]
    assert [v.name for v in body.outputs] == ["sum"] and [v.name for v in graph.outputs] == ["b"]


def test_what_nothing_reads_is_taken_out_and_what_bodies_read_stays():
    graph = branching()
    graph.prune()
    assert [n.op for n in graph.nodes] == ["Relu", "If"]
    assert [n.op for n in graph.nodes[1].attrs["then_branch"].nodes] == ["Add"]
    assert list(graph.initializers) == ["w"]


def test_what_a_graph_reads_includes_its_bodies():
    assert branching().read() >= {"x", "p", "a", "w", "b", "c"}
