"""The records of a graph: how it prints, which graphs a node holds, and what a graph reads from around it."""

from __future__ import annotations

from graphc.interop.onnx.elements import FLOAT
from graphc.interop.onnx.graph import OnnxGraph, OnnxNode, Port, captured


def graph(*nodes: OnnxNode, inputs: str = "", outputs: str = "y") -> OnnxGraph:
    ports = [[Port(n, "tensor", FLOAT, None) for n in names.split()] for names in (inputs, outputs)]
    return OnnxGraph("g", *ports, list(nodes), {})


def node(op: str, inputs: str, outputs: str, domain: str = "", **attributes: object) -> OnnxNode:
    return OnnxNode(op.lower(), op, domain, 17, tuple(inputs.split()), tuple(outputs.split()), attributes)


def test_a_graph_prints_as_calls():
    assert str(graph(node("Relu", "x", "y"), inputs="x")).splitlines() == ["g(x)", "  y = Relu(x)", "  return y"]


def test_operators_of_other_domains_are_called_with_them():
    assert (node("Relu", "x", "y").title, node("Gelu", "x", "y", "com.microsoft").title) == (
        "Relu",
        "com.microsoft.Gelu",
    )


def test_a_node_has_the_graphs_of_its_attributes():
    inner, other = graph(), graph()
    assert list(node("If", "c", "y", then_branch=inner, several=(other, 1), axis=3).graphs()) == [inner, other]


def test_names_from_around_are_those_that_nothing_inside_defines():
    inner = graph(node("Add", "a i", "t"), node("Mul", "t b", "y"), inputs="i")
    outer = graph(node("Relu", "q", "a"), node("Loop", "n", "z", body=inner), outputs="z")
    assert captured(inner) == {"a", "b"}
    assert captured(outer) == {"q", "n", "b"}


def test_results_that_are_only_handed_on_are_read_from_around():
    assert captured(graph(outputs="outside")) == {"outside"}
