"""Text form of graphs."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape

import numpy as np
import pytest

import graphc.ops.registry  # noqa: F401  (fills the registry)
from graphc.base.dtypes import float32, float64, int64
from graphc.base.location import Location
from graphc.ir.graph.build import constant, emit
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.text import collect_data, graph_lines, parse_location, print_graph, print_location
from graphc.ir.literal import digest
from graphc.ir.op import REGISTRY, Attr, OpDef, Trait
from graphc.ir.types import TensorType

F = TensorType(float32, (2, 3))


@pytest.fixture
def every_attr() -> Iterator[OpDef]:
    """An op with an attribute of each kind, two results, registered for the time of a test."""
    op = OpDef(
        "every_attr",
        "Test op.",
        ("x",),
        (
            Attr("i", "int", "", 1, False),
            Attr("f", "float", "", 0.0, False),
            Attr("b", "bool", "", False, False),
            Attr("s", "str", "", "none", False),
            Attr("n", "ints", "", (), False),
            Attr("p", "pairs", "", (), False),
            Attr("d", "dtype", "", float32, False),
            Attr("c", "scalar", "", 0, False),
            Attr("a", "array", "", None, False),
            Attr("g", "graph", "", None, False),
        ),
        lambda x, **attrs: (x, TensorType(int64)),
        traits=Trait.PURE,
    )
    REGISTRY[op.name] = op
    yield op
    del REGISTRY[op.name]


def mlp() -> Graph:
    graph = Graph("mlp")
    x = graph.add_input(F, "x")
    w = graph.add_input(TensorType(float32, (4, 3)), "w", "param", "fc1.weight")
    graph.add_input(TensorType(int64, (2,)), "rng", "state", "graphc.random")
    (h,) = emit(graph, REGISTRY["matmul"], (x, w), {"transpose_b": True}, Location("fc1", "model.py", 12), "fc1.h")
    (y,) = emit(graph, REGISTRY["maximum"], (h, graph.scalar(0, float32)), {}, Location("", "model.py", 13), "y")
    graph.set_outputs([y, graph.scalar(0.1, float64)])
    return graph


def test_mlp():
    assert print_graph(mlp()) == (
        'graph @mlp(%x: f32[2,3], %w: f32[4,3] param "fc1.weight", %rng: i64[2] state "graphc.random")'
        " -> (f32[2,4], f64[]) {\n"
        "  %fc1.h = matmul(%x, %w) {transpose_b=true} : f32[2,4]  // fc1 model.py:12\n"
        "  %y = maximum(%fc1.h, f32(0.0)) : f32[2,4]  // model.py:13\n"
        "  return %y, f64(0.1)\n"
        "}\n"
    )


def test_str_and_html_are_the_text():
    assert str(mlp()) == print_graph(mlp())
    assert "-> (f32[2,4], f64[]) {" in unescape(mlp()._repr_html_())


def test_long_head_has_an_input_a_line():
    graph = Graph("g")
    for i in range(6):
        graph.add_input(F, f"weight{i}", "param", f"layer{i}.weight")
    graph.set_outputs(graph.inputs[:1])
    lines = print_graph(graph).split("\n")
    assert lines[:2] == ["graph @g(", '    %weight0: f32[2,3] param "layer0.weight",']
    assert lines[6:8] == ['    %weight5: f32[2,3] param "layer5.weight"', ") -> (f32[2,3]) {"]


def test_empty_graph():
    assert print_graph(Graph()) == "graph @main() -> () {\n  return\n}\n"


def test_odd_names_are_quoted():
    graph = Graph("a b")
    graph.add_input(F, "x y", "input", "p")
    assert print_graph(graph).startswith('graph @"a b"(%"x y": f32[2,3] input "p") -> () {')


def test_attributes_at_their_default_are_left_out(every_attr: OpDef):
    graph = Graph()
    x = graph.add_input(F, "x")
    emit(graph, every_attr, (x,), {}, name="y")
    emit(graph, every_attr, (x,), {"c": 0.0, "f": -0.0, "b": True}, name="z")
    assert print_graph(graph).split("\n")[1:3] == [
        "  %y.0, %y.1 = every_attr(%x) : f32[2,3], i64[]",
        "  %z.0, %z.1 = every_attr(%x) {f=-0.0, b=true, c=0.0} : f32[2,3], i64[]",
    ]


def test_attributes_of_every_kind(every_attr: OpDef):
    graph, sub = Graph(), Graph("sub")
    sub.set_outputs([sub.add_input(F, "a")])
    attrs = {
        "i": -3,
        "f": float("inf"),
        "b": True,
        "s": 'a "b"\n',
        "n": (1, -2),
        "p": ((0, 1), (2, 3)),
        "d": int64,
        "c": True,
        "a": np.array([1.5, 2.0]),
        "g": sub,
    }
    emit(graph, every_attr, (graph.add_input(F, "x"),), attrs, Location("m"), "y")
    assert print_graph(graph).split("\n")[1:5] == [
        r'  %y.0, %y.1 = every_attr(%x) {i=-3, f=inf, b=true, s="a \"b\"\n", n=[1,-2], p=[[0,1],[2,3]], d=i64, c=true, '
        "a=f64[2](1.5, 2.0), g=graph @sub(%a: f32[2,3]) -> (f32[2,3]) {",
        "    return %a",
        "  }} : f32[2,3], i64[]  // m",
        "  return",
    ]


def test_large_constants_are_data_beside_the_text(every_attr: OpDef):
    graph, sub = Graph(), Graph("sub")
    large, inner = np.arange(20, dtype=np.float32), np.arange(30)
    constant(graph, large, float32)
    constant(graph, np.arange(3), int64)
    constant(sub, inner, int64)
    emit(graph, every_attr, (graph.add_input(F, "x"),), {"g": sub})
    assert f"%constant = constant() {{value=f32[20]({digest(large)})}} : f32[20]" in print_graph(graph)
    data = collect_data(graph)
    assert data.keys() == {digest(large), digest(inner)}
    np.testing.assert_array_equal(data[digest(large)], large)


def test_lines_know_their_nodes():
    graph = mlp()
    lines = graph_lines(graph)
    nodes = [n for n in graph.nodes() if not n.results[0].is_scalar_constant]
    assert [n for _, n in lines] == [None, *nodes, None, None]


@pytest.mark.parametrize(
    ("location", "text"),
    [
        (Location(), ""),
        (Location("fc1"), "  // fc1"),
        (Location("", "model.py", 3), "  // model.py:3"),
        (Location("layers.0", "src/model.py", 12), "  // layers.0 src/model.py:12"),
        (Location("a b", "my files/model.py", 1), '  // "a b" "my files/model.py":1'),
        (Location("", "c:d.py", 0), "  // c:d.py:0"),
        (Location("odd:module", "x.py", 7), '  // "odd:module" x.py:7'),
        (Location("", "", 4), '  // "":4'),
    ],
)
def test_location(location: Location, text: str):
    assert print_location(location) == text
    assert parse_location(text.removeprefix("  // ")) == location


@pytest.mark.parametrize("comment", ["a note for people", "see fc1: it is wrong", '"broken'])
def test_comments_that_are_no_location(comment: str):
    assert parse_location(comment) == Location()
