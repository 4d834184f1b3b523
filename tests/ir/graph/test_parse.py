"""Texts of graphs read back as what was printed; wrong texts give the messages of the file of wrong graphs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings

from graphc.base.dtypes import float32
from graphc.base.location import Location
from graphc.base.sizes.named_dims import Dim
from graphc.errors import ParseError, VerifyError
from graphc.ir.graph.graph import Graph, input_class, input_path
from graphc.ir.graph.interpret import evaluate
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import collect_data, print_graph
from graphc.ir.graph.verify import verify_graph
from graphc.ir.op import REGISTRY
from graphc.ir.types import TensorType
from tests.ir.cases import Case, read_cases
from tests.ir.random_graphs import graphs

MLP = """graph @mlp(%x: f32[2,3], %w: f32[4,3] param "fc1.weight") -> (f32[2,4], f64[]) {
  %fc1.h = matmul(%x, %w) {transpose_b=true} : f32[2,4]  // fc1 model.py:12
  %y = maximum(%fc1.h, f32(0.0)) : f32[2,4]  // "a b.py":13
  return %y, f64(0.1)
}
"""


@settings(max_examples=200, deadline=None)
@given(graphs())
def test_random_graphs_read_back(graph: Graph):
    verify_graph(graph)
    again = parse_graph(print_graph(graph), collect_data(graph))
    verify_graph(again)
    assert again == graph
    assert print_graph(again) == print_graph(graph)
    shown = [n for n in graph.nodes() if not n.results[0].is_scalar_constant]
    read = [n for n in again.nodes() if not n.results[0].is_scalar_constant]
    for a, b in zip(shown, read, strict=True):
        assert [r.name for r in a.results] == [r.name for r in b.results]
        assert a.op is b.op and a.location == b.location


@pytest.mark.parametrize("case", read_cases("wrong_graphs.gc", "//"))
def test_wrong_graph(case: Case):
    with pytest.raises(ParseError) as error:
        parse_graph(case.text)
    assert error.value.what == case.message
    assert error.value.where


def test_what_is_read():
    graph = parse_graph(MLP)
    assert print_graph(graph) == MLP
    x, w = graph.inputs
    assert (input_class(x), input_class(w), input_path(w)) == ("input", "param", "fc1.weight")
    h, y = [n for n in graph.nodes() if n.op.name != "constant"]
    assert h.op is REGISTRY["matmul"] and h.attrs == {"transpose_a": False, "transpose_b": True}
    assert (h.location, y.location) == (Location("fc1", "model.py", 12), Location("", "a b.py", 13))
    assert graph.outputs[0] is y.result and graph.outputs[1] is graph.scalar(0.1, graph.outputs[1].dtype)


def test_a_read_graph_computes():
    x, w = np.ones((2, 3), np.float32), np.arange(12, dtype=np.float32).reshape(4, 3) - 9
    y, c = evaluate(parse_graph(MLP), [x, w])
    np.testing.assert_array_equal(y, np.maximum(x @ w.T, 0))
    assert c == 0.1


def test_large_constants_come_from_the_data():
    array = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    graph = Graph()
    graph.set_outputs([graph.add_input(parse_graph(MLP).inputs[0].type, "x")])
    node = graph.add_node(REGISTRY["constant"], (), {"value": array}, (type(graph.inputs[0].type)(float32, (4, 8)),))
    graph.set_outputs(node.results)
    again = parse_graph(print_graph(graph), collect_data(graph))
    assert again == graph
    np.testing.assert_array_equal(evaluate(again, [np.zeros((2, 3), np.float32)])[0], array)
    with pytest.raises(ParseError, match="differ from the printed ones"):
        parse_graph(print_graph(graph), {next(iter(collect_data(graph))): array + 1})


def test_scalar_constant_as_a_node():
    graph = parse_graph("""graph @g() -> (f32[]) {
  %c = constant() {value=f32(2.0)} : f32[]
  %y = neg(%c) : f32[]
  return %y
}""")
    assert "%y = neg(f32(2.0)) : f32[]" in print_graph(graph)


def test_names_that_results_have_in_between_are_free():
    text = """graph @g(%x: f32[2]) -> () {
  %neg = neg(%x) : f32[2]
  %neg.1 = neg(%x) : f32[2]
  %neg.1.1 = neg(%x) : f32[2]
  return
}
"""
    assert print_graph(parse_graph(text)) == text


def test_results_may_be_named_crosswise():
    text = """graph @g(%x: f32[2]) -> (f32[2], f32[2], f32[2]) {
  %c.1, %c.0, %c = call(%x) {forward=graph @f(%a: f32[2]) -> (f32[2], f32[2], f32[2]) {
    %b = exp(%a) : f32[2]
    %c = neg(%a) : f32[2]
    return %b, %c, %b
  }, backward=graph @f.grad(%s: f32[2], %g: f32[2], %h: f32[2]) -> (f32[2]) {
    %d = mul(%s, %g) : f32[2]
    %e = sub(%d, %h) : f32[2]
    return %e
  }, results=2} : f32[2], f32[2], f32[2]  // act
  return %c.1, %c.0, %c
}
"""
    graph = parse_graph(text)
    assert print_graph(graph) == text
    verify_graph(graph)


def test_comments_that_are_no_location_are_passed_over():
    graph = parse_graph(
        "// about\ngraph @g(%x: f32[2]) -> (f32[2]) { // head\n %y = neg(%x) : f32[2] // a note\n return %y }"
    )
    assert graph.nodes()[0].location == Location()


def test_where_and_remedy():
    with pytest.raises(ParseError) as error:
        parse_graph(MLP.replace("maximum", "maximun"))
    assert str(error.value) == (
        "line 3, column 8: expected an op, found maximun\n"
        '  where  %y = maximun(%fc1.h, f32(0.0)) : f32[2,4]  // "a b.py":13\n'
        "  try    write maximum"
    )


SIZES = """dim batch = 0..64 hint 32 common [1,8]
dim side = 16..2147483647 hint 64
graph @c(
    %x: f32[-(-40 // side),(side // (batch + 1)),((side + 1) // 2),2*side - 1],
    %n: i64[side - max(side - 99, 0)]
) -> (f32[3*batch*side]) {
  %y = broadcast_to(f32(1.0)) {shape=[3*batch*side]} : f32[3*batch*side]  // fc m.py:1
  return %y
}
"""


def test_sizes_read_back():
    graph = parse_graph(SIZES)
    verify_graph(graph)
    assert print_graph(graph) == SIZES
    assert list(graph.dims) == ["batch", "side"]
    assert (graph.dims["batch"].low, graph.dims["batch"].high, graph.dims["batch"].common) == (0, 64, (1, 8))


def test_a_division_and_a_comment_are_told_apart():
    text = SIZES.replace("2*side - 1],", "2*side - 1], // an image\n ").replace(") -> (f32", ") // head\n  -> (f32")
    assert parse_graph(text) == parse_graph(SIZES)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("dim n = 4..2", "line 1, column 5: the sizes of dimension n are 4..2"),
        ("dim n = 1..2\ndim n = 1..2", "line 2, column 5: dimension n is declared twice"),
        ("dim n 1", "line 1, column 7: expected '=', found 1"),
        ("dim m = 1..2", "line 2, column 18: n is not declared as a dimension"),
        ("", "line 2, column 18: expected an integer, found n"),
    ],
)
def test_wrong_dimensions_are_refused(head: str, message: str):
    with pytest.raises(ParseError) as error:
        parse_graph(f"{head}\ngraph @g(%x: f32[n]) -> () {{\n  return\n}}\n")
    assert error.value.what == message


def test_a_graph_has_one_dimension_of_a_name():
    graph = Graph()
    for i, high in enumerate((4, 5)):
        graph.add_input(TensorType(float32, (Dim("n", 1, high),)), f"x{i}")
    with pytest.raises(VerifyError, match="two dimensions are named n"):
        verify_graph(graph)


def test_a_fresh_process_knows_all_ops():
    code = f"from graphc.ir.graph.parse import parse_graph; print(len(parse_graph({MLP!r}).outputs))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "2\n"
