"""Emission of nodes: types, attributes, names, and what errors say."""

from __future__ import annotations

import numpy as np
import pytest

import graphc.ops.registry  # noqa: F401  (fills the registry)
from graphc.base.dtypes import float32, float64, int8
from graphc.base.location import Location
from graphc.errors import AttributeValueError, DTypeError
from graphc.ir.graph.build import constant, describe, emit
from graphc.ir.graph.graph import CONSTANT, Graph
from graphc.ir.op import REGISTRY
from graphc.ir.types import TensorType

F = TensorType(float32, (2, 3))


def test_emit_runs_the_type_rule_and_completes_attributes():
    graph = Graph()
    x = graph.add_input(F, "x")
    location = Location("fc1", "m.py", 3)
    (y,) = emit(graph, REGISTRY["sum"], (x,), {"axes": [0]}, location, "total")
    assert (y.type, y.name, y.node.location) == (TensorType(float32, (3,)), "total", location)
    assert y.node.attrs == {"axes": (0,), "keepdims": False}
    assert emit(graph, REGISTRY["neg"], (y,))[0].name == "neg"


def test_errors_say_where_and_from():
    graph = Graph()
    x, y = graph.add_input(F, "x"), graph.add_input(TensorType(float64, (3,)), "fc1.w")
    with pytest.raises(DTypeError) as error:
        emit(graph, REGISTRY["add"], (x, y), {}, Location("fc1", "model.py", 3))
    assert error.value.where == "add(%x: f32[2,3], %fc1.w: f64[3])"
    assert error.value.origin == "fc1, model.py:3"
    assert len(graph) == 0
    with pytest.raises(AttributeValueError) as wrong_kind:
        emit(graph, REGISTRY["sum"], (x,), {"axes": 1.5})
    assert wrong_kind.value.where == "sum(%x: f32[2,3]) {axes=1.5}"
    assert wrong_kind.value.origin is None


def test_describe_names_operands_that_have_no_name():
    assert describe(REGISTRY["add"], [F, F], {}) == "add(%x: f32[2,3], %y: f32[2,3])"
    assert describe(REGISTRY["concat"], [F, F], {"axis": 0}) == "concat(%parts: f32[2,3], %parts: f32[2,3]) {axis=0}"
    assert describe(CONSTANT, [], {"value": np.zeros(2)}) == "constant()"


def test_constants():
    graph = Graph()
    array = constant(graph, [[1, 2]], int8)
    assert array.type == TensorType(int8, (1, 2)) and array.node.attrs["value"].tolist() == [[1, 2]]
    scalar = constant(graph, 2, float32)
    assert scalar is graph.scalar(2.0, float32)
    assert emit(graph, CONSTANT, (), {"value": np.float32(2)}) == (scalar,)
