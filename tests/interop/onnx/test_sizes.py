"""Initializers that are sizes, and those that are parameters."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402

import graphc as gc  # noqa: E402
from graphc.interop.onnx.reader import read_model  # noqa: E402
from graphc.interop.onnx.sizes import asked_constants  # noqa: E402
from tests.interop.onnx.models import graph_of, model, node, weight  # noqa: E402


def test_shapes_are_asked_for_through_what_computes_them():
    nodes = [node("Concat", "a b", "s", axis=0), node("Reshape", "x s", "m"), node("Add", "m w", "y")]
    weights = [weight("a", np.array([1])), weight("b", np.array([2])), weight("w", np.ones((1, 2), np.float32))]
    graph = read_model(model(graph_of(*nodes, weights=weights))).graph
    assert asked_constants(graph) & graph.constants.keys() == {"a", "b"}
    assert list(gc.from_onnx(model(graph_of(*nodes, weights=weights))).state_dict()) == ["w"]


def test_functions_ask_for_what_their_operators_ask_for():
    versions = [helper.make_opsetid("", 17)]
    own = helper.make_function("own", "Shaped", ["a", "s"], ["b"], [node("Reshape", "a s", "b")], versions)
    nodes = [helper.make_node("Shaped", ["x", "s"], ["y"], domain="own")]
    proto = model(graph_of(*nodes, weights=[weight("s", np.array([[2]])[0])]), functions=[own], own=1)
    assert "s" in asked_constants(read_model(proto).graph)


def test_functions_within_functions_are_looked_at_once_for_each_use():
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    functions = [helper.make_function("own", "F0", ["a", "b"], ["c"], [node("Add", "a b", "c")], versions)]
    for i in range(1, 50):
        applied = helper.make_node(f"F{i - 1}", ["a", "b"], ["c"], domain="own")
        functions.append(helper.make_function("own", f"F{i}", ["a", "b"], ["c"], [applied], versions))
    graph = graph_of(helper.make_node("F49", ["x", "x"], ["y"], domain="own"))
    assert gc.from_onnx(model(graph, functions=functions, own=1))(np.float32([1, 2])).tolist() == [2, 4]
