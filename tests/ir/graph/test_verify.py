"""The verifier of graphs: each rule broken once, and what the message shows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphc.ops.registry  # noqa: F401  (fills the registry)
from graphc.base.dtypes import float32, float64
from graphc.base.location import Location
from graphc.errors import VerifyError
from graphc.ir.graph.build import constant, emit
from graphc.ir.graph.graph import CONSTANT, Graph, Value
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.verify import sub_graphs, verify_graph
from graphc.ir.op import REGISTRY, OpDef, Trait
from graphc.ir.types import TensorType
from tests.ir.cases import message_under

TEXT = """graph @g(%x: f32[2], %w: f32[2] param "w", %s: f32[2] state "s") -> (f32[2], f32[2]) {
  %h = add(%x, %w) : f32[2]
  %y = neg(%h) : f32[2]
  %t = tap(%y) {name="first"} : f32[2]
  %u = tap(%y) {name="second"} : f32[2]
  %n = state_write(%s, %y) : f32[2]
  %r = mul(%y, f32(2.0)) : f32[2]
  return %r, %n
}
"""


def value(graph: Graph, name: str) -> Value:
    return next(v for v in (*graph.inputs, *(r for n in graph.nodes() for r in n.results)) if v.name == name)


def test_right_graph():
    verify_graph(parse_graph(TEXT))
    verify_graph(Graph())


def break_type(graph: Graph) -> None:
    value(graph, "y").type = TensorType(float64, (2,))


def break_operand_type(graph: Graph) -> None:
    value(graph, "w").type = TensorType(float64, (2,))


def break_attributes(graph: Graph) -> None:
    value(graph, "t").node.attrs = {}


def break_registration(graph: Graph) -> None:
    value(graph, "y").node.op = OpDef("neg", "Another.", ("x",), (), lambda x: x)


def break_order(graph: Graph) -> None:
    node = value(graph, "h").node
    node.operands = (value(graph, "x"), value(graph, "u"))  # the edges and the order do not know


def break_edges(graph: Graph) -> None:
    node = value(graph, "h").node
    node.operands = (value(graph, "w"), value(graph, "x"))


def add_edge(graph: Graph) -> None:
    graph._connect(value(graph, "h").node, 7, value(graph, "x"))


def break_names(graph: Graph) -> None:
    value(graph, "y").name = "h"


def break_back_reference(graph: Graph) -> None:
    y = value(graph, "y")
    y.node.results = (Value(y.node, 0, y.type, "y"),)


def break_scalars(graph: Graph) -> None:
    array = np.asarray(np.float32(2))
    graph.add_node(CONSTANT, (), {"value": array}, (TensorType(float32),), name="again")


def break_outputs(graph: Graph) -> None:
    graph.set_outputs([Graph("other").add_input(TensorType(float32), "z")])


def write_computed(graph: Graph) -> None:
    graph.set_operand(value(graph, "n").node, 0, value(graph, "h"))


def write_twice(graph: Graph) -> None:
    emit(graph, REGISTRY["state_write"], (value(graph, "s"), value(graph, "h")), {}, name="again")


def write_input(graph: Graph) -> None:
    graph.set_operand(value(graph, "n").node, 0, value(graph, "x"))


def repeat_path(graph: Graph) -> None:
    value(graph, "s").node.attrs["path"] = "w"


def break_class(graph: Graph) -> None:
    value(graph, "w").node.attrs["cls"] = "output"


def lose_input(graph: Graph) -> None:
    graph.inputs.pop()


def foreign_input(graph: Graph) -> None:
    graph.inputs[0] = Graph("other").add_input(TensorType(float32, (2,)), "x")


def swap_effects(graph: Graph) -> None:
    late = emit(graph, REGISTRY["tap"], (value(graph, "x"),), {"name": "late"}, name="late")[0]
    graph.set_operand(value(graph, "h").node, 0, late)


BROKEN: list[tuple[Callable[[Graph], None], str, int]] = [
    (break_type, "neg gives (f32[2]), the node says (f64[2])", 3),
    (break_operand_type, "add: element types differ: f32 (operand 0) and f64 (operand 1)", 2),
    (break_attributes, "tap has the attributes [], not ['name']", 4),
    (break_registration, "op neg is not registered", 3),
    (break_order, "operand 1 (%u) is not computed before its use", 2),
    (break_edges, "the edges of add do not mirror its operands", 2),
    (add_edge, "1 more edges than operands", 1),
    (break_names, "two values are called %h", 3),
    (break_back_reference, "operand 0 (%y) is not computed before its use", 4),
    (break_scalars, "scalar constant again exists twice", 1),
    (break_outputs, "output 0 (%z) does not belong to the graph", 1),
    (write_computed, "state_write writes to %h, which is not a param or state argument", 6),
    (write_twice, "%s is written twice", 8),
    (write_input, "state_write writes to %x, which is not a param or state argument", 6),
    (repeat_path, "%s: another input has the path 'w'", 1),
    (break_class, "%w: class output is not one of input, param, state, weight", 1),
    (lose_input, "3 input nodes, 2 inputs", 1),
    (foreign_input, "input %x belongs to another graph", 1),
    (swap_effects, "tap was made before the effect that it follows", 5),
]


@pytest.mark.parametrize(("change", "message", "line"), BROKEN, ids=[c.__name__ for c, _, _ in BROKEN])
def test_broken_graph(change: Callable[[Graph], None], message: str, line: int):
    graph = parse_graph(TEXT)
    change(graph)
    with pytest.raises(VerifyError) as error:
        verify_graph(graph)
    assert error.value.what == f"@g: {message}"
    assert message_under(error.value.where or "", line) == message


def test_whole_message():
    graph = parse_graph(TEXT.replace("%h = add(%x, %w) : f32[2]", "%h = add(%x, %w) : f32[2]  // fc1 model.py:3"))
    value(graph, "h").type = TensorType(float32, (3,))
    with pytest.raises(VerifyError) as error:
        verify_graph(graph)
    assert str(error.value) == (
        "@g: add gives (f32[2]), the node says (f32[3])\n"
        "  where  line 2\n"
        '    1 | graph @g(%x: f32[2], %w: f32[2] param "w", %s: f32[2] state "s") -> (f32[2], f32[2]) {\n'
        "    2 |   %h = add(%x, %w) : f32[3]  // fc1 model.py:3\n"
        "      |   ^ add gives (f32[2]), the node says (f32[3])\n"
        "    3 |   %y = neg(%h) : f32[2]\n"
        '    4 |   %t = tap(%y) {name="first"} : f32[2]\n'
        '    5 |   %u = tap(%y) {name="second"} : f32[2]\n'
        "  from   fc1, model.py:3"
    )


def test_cycle():
    graph = parse_graph(TEXT)
    graph.set_operand(value(graph, "h").node, 0, value(graph, "y"))
    with pytest.raises(VerifyError, match=r"@g: neg \(%y\) depends on itself"):
        verify_graph(graph)


def test_sub_graphs_are_checked():
    graph = parse_graph("""graph @g(%x: f32[2]) -> (f32[2]) {
  %y = call(%x) {forward=graph @f(%a: f32[2]) -> (f32[2]) {
    %b = neg(%a) : f32[2]
    return %b
  }, backward=graph @f.grad(%a: f32[2]) -> (f32[2]) {
    return %a
  }, results=1} : f32[2]
  return %y
}""")
    verify_graph(graph)
    forward, backward = sub_graphs(graph)
    assert (forward.name, backward.name) == ("f", "f.grad")
    value(forward, "b").name = "a"
    with pytest.raises(VerifyError, match="@f: two values are called %a"):
        verify_graph(graph)


def test_effects_keep_their_order_through_new_operands():
    """A rewrite may give the first effect an operand that was made after the second effect."""
    graph = parse_graph(TEXT)
    new = emit(graph, REGISTRY["exp"], (value(graph, "h"),), {}, Location(), "new")[0]
    graph.set_operand(value(graph, "t").node, 0, new)
    verify_graph(graph)
    names = [n.results[0].name for n in graph.nodes() if n.op.has(Trait.EFFECT)]
    assert names == ["t", "u", "n"]
    assert [n.results[0].name for n in graph.nodes()].index("new") < 4


def test_large_constant_graph_is_right():
    graph = Graph()
    graph.set_outputs([constant(graph, np.zeros((8, 8)), float64)])
    verify_graph(graph)


@pytest.mark.parametrize("declared", ["i64[2]", "i32[]", 'i64[] state "s"'])
def test_sizes_are_given_by_whole_numbers(declared):
    graph = parse_graph(f"dim n = 0..7\ngraph @g(%n: {declared} = n) -> () {{\n  return\n}}\n")
    with pytest.raises(VerifyError, match=r"a size is given by an input of type i64\[\]"):
        verify_graph(graph)
