"""The graph: names, interned scalars, order, uses, and every change to it."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import graphc.ops.registry  # noqa: F401  (fills the registry)
from graphc.base.dtypes import float32, float64, int32
from graphc.errors import VerifyError
from graphc.ir.graph.build import constant, emit
from graphc.ir.graph.graph import CONSTANT, Graph, Value, attr_key, input_class, input_path
from graphc.ir.graph.interpret import copy
from graphc.ir.op import REGISTRY, Trait
from graphc.ir.types import TensorType

F = TensorType(float32, (2,))


def make(graph: Graph, op: str, *operands: Value, **attrs: object) -> Value:
    return emit(graph, REGISTRY[op], operands, attrs)[0]


@pytest.fixture
def graph() -> Graph:
    """y = (x + x) * w, with x and w arguments."""
    graph = Graph("g")
    x = graph.add_input(F, "x")
    w = graph.add_input(F, "w", "param", "fc.weight")
    graph.set_outputs([make(graph, "mul", make(graph, "add", x, x), w)])
    return graph


def test_inputs(graph: Graph):
    x, w = graph.inputs
    assert (input_class(x), input_path(x), input_class(w), input_path(w)) == ("input", "", "param", "fc.weight")
    assert (input_class(graph.outputs[0]), input_path(graph.outputs[0])) == ("", "")
    with pytest.raises(VerifyError, match="input class 'output' is not one of input, param, state, weight"):
        graph.add_input(F, "z", "output")


def test_names_are_unique(graph: Graph):
    names = [make(graph, "neg", graph.inputs[0]).name for _ in range(3)]
    assert names == ["neg", "neg.1", "neg.2"]
    graph.rename(graph.inputs[0], "neg.1")
    assert graph.inputs[0].name == "neg.1.1"
    assert graph.add_input(F, "x").name == "x"


def test_a_name_is_free_after_its_value_is_gone(graph: Graph):
    value = make(graph, "neg", graph.inputs[0])
    graph.erase(value.node)
    assert make(graph, "neg", graph.inputs[0]).name == "neg"


def test_scalars_are_interned_by_type_and_bits(graph: Graph):
    half = graph.scalar(0.5, float32)
    assert half is graph.scalar(np.float32(0.5), float32) and half.is_scalar_constant
    others = [
        graph.scalar(0.5, float64),
        graph.scalar(0.0, float32),
        graph.scalar(-0.0, float32),
        graph.scalar(1, int32),
    ]
    assert len({half, *others}) == 5
    assert half.name == "f32(0.5)" and half.node.attrs["value"].dtype == np.float32
    assert constant(graph, 0.5, float32) is half
    graph.erase(half.node)
    assert graph.scalar(0.5, float32) is not half


def test_uses(graph: Graph):
    x, w = graph.inputs
    add, mul = graph.nodes()
    assert graph.uses(x) == [(add, 0), (add, 1)]
    assert graph.uses(w) == [(mul, 1)] and graph.uses(mul.result) == []
    assert graph.is_used(mul.result) and not graph.is_used(graph.add_input(F, "z"))


def test_edges_mirror_operands(graph: Graph):
    add, mul = graph.nodes()
    x, w = graph.inputs
    assert set(graph.networkx().edges(keys=True, data="result")) == {
        (x.node, add, 0, 0),
        (x.node, add, 1, 0),
        (add, mul, 0, 0),
        (w.node, mul, 1, 0),
    }
    graph.set_operand(mul, 1, add.result)
    assert (add, mul, 1, 0) in graph.networkx().edges(keys=True, data="result")
    assert graph.uses(w) == []
    with pytest.raises(nx.NetworkXError, match=r"[Ff]rozen"):
        graph.networkx().remove_node(mul)


def test_replace_uses(graph: Graph):
    x, w = graph.inputs
    add, mul = graph.nodes()
    graph.set_outputs([mul.result, x])
    assert graph.replace_uses(x, w) == 3
    assert add.operands == (w, w) and graph.outputs == (mul.result, w)
    assert graph.replace_uses(w, w) == 0


def test_erase(graph: Graph):
    add, mul = graph.nodes()
    with pytest.raises(VerifyError, match=r"add \(%add\) is still used"):
        graph.erase(add)
    with pytest.raises(VerifyError, match=r"mul \(%mul\) is still used"):
        graph.erase(mul)
    graph.set_outputs([])
    graph.erase(mul)
    graph.erase(add)
    assert len(graph) == 0 and add not in graph
    graph.erase(graph.inputs[0].node)
    assert [v.name for v in graph.inputs] == ["w"]


def test_operands_of_another_graph_are_refused(graph: Graph):
    other = Graph()
    with pytest.raises(VerifyError, match=r"operand 0 of neg \(%x\) belongs to another graph"):
        make(other, "neg", graph.inputs[0])


def test_late_operands_are_placed_before_their_user(graph: Graph):
    add, mul = graph.nodes()
    tail = make(graph, "neg", mul.result).node
    late = make(graph, "exp", graph.inputs[1]).node
    later = make(graph, "log", late.result).node
    graph.set_operand(mul, 1, later.result)
    assert graph.nodes() == [add, late, later, mul, tail]


def test_order_of_many_shared_late_operands():
    graph = Graph()
    x = graph.add_input(F, "x")
    first = make(graph, "add", x, x).node
    values = [x]
    for _ in range(50):
        values.append(make(graph, "add", values[-1], values[-1]))
    graph.set_operand(first, 0, values[-1])
    graph.set_operand(first, 1, values[-2])
    assert [n.id for n in graph.nodes()] == [*range(2, 52), 1]


def test_cycles_are_refused(graph: Graph):
    add, mul = graph.nodes()
    graph.set_operand(add, 0, mul.result)
    with pytest.raises(VerifyError, match="depends on itself"):
        graph.nodes()


def test_nodes_created_since_an_id(graph: Graph):
    first = graph.next_id
    x = graph.add_input(TensorType(float32, (2,)), "late")
    (y,) = emit(graph, REGISTRY["neg"], (x,))
    assert graph.created_since(first) == [x.node, y.node]
    assert graph.created_since(graph.next_id) == []


def test_nodes_by_op(graph: Graph):
    x = graph.add_input(TensorType(float32, (2,)), "fresh")
    assert not any(n.op.name == "neg" for n in graph.nodes_of(lambda op: op.name == "neg"))
    (y,) = emit(graph, REGISTRY["neg"], (x,))
    (z,) = emit(graph, REGISTRY["neg"], (y,))
    assert graph.nodes_of(lambda op: op.name == "neg") == [y.node, z.node]
    assert graph.having(Trait.ELEMENTWISE) == [n for n in graph.nodes() if n.op.has(Trait.ELEMENTWISE)]
    graph.erase(z.node)
    assert graph.nodes_of(lambda op: op.name == "neg") == [y.node]


def test_equality_is_by_text_and_data(graph: Graph):
    assert copy(graph) == graph
    again = copy(graph)
    again.rename(again.inputs[0], "z")
    assert again != graph and graph != "text"
    large = [Graph(), Graph()]
    for i, other in enumerate(large):
        other.set_outputs([constant(other, np.full(32, i), float32)])
    assert large[0] != large[1] and large[0] == copy(large[0])
    assert len({graph, copy(graph)}) == 2


def test_unused_scalars_do_not_count(graph: Graph):
    again = copy(graph)
    again.scalar(3.0, float32)
    assert again == graph


def test_attr_key():
    array, other = np.arange(3), np.arange(3, dtype=np.int32)
    assert attr_key({"a": array}) == attr_key({"a": array.copy()}) != attr_key({"a": other})
    assert attr_key({"a": 1}) != attr_key({"a": 1.0}) != attr_key({"a": True})
    assert attr_key({"g": Graph("a")}) == attr_key({"g": Graph("a")}) != attr_key({"g": Graph("b")})
    bodies = [Graph() for _ in range(3)]
    for body, number in zip(bodies, (1.0, 1.0, 2.0), strict=True):
        body.set_outputs([constant(body, np.full(32, number), float32)])
    keys = [attr_key({"g": body}) for body in bodies]
    assert keys[0] == keys[1] != keys[2]
    assert len(set(keys)) == 2


def test_result_of_a_node_with_several(graph: Graph):
    node = graph.add_node(CONSTANT, (), {"value": np.zeros(2)}, (F, F))
    assert [r.name for r in node.results] == ["constant.0", "constant.1"]
    with pytest.raises(VerifyError, match="constant has 2 results"):
        _ = node.result


def test_outputs_count_as_uses():
    graph = Graph("g")
    x = graph.add_input(TensorType(float32, (2,)), "x")
    y = make(graph, "neg", x)
    assert graph.is_used_once(x) and not graph.is_used(y) and not graph.is_used_once(y)
    graph.set_outputs([y, y])
    assert graph.is_used(y) and not graph.is_used_once(y)
    z = make(graph, "exp", x)
    assert graph.replace_uses(y, z) == 2 and graph.outputs == (z, z)
    assert not graph.is_used(y) and not graph.is_used_once(x)
    graph.set_outputs([z])
    assert graph.is_used_once(z)
