"""Counting what functions become, before any is written out."""

from __future__ import annotations

from typing import Any

import pytest

from graphc.base.errors import ArtifactError
from graphc.interop.onnx.growth import MOST_DEPTH, count_operators

onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402


def function(name: str, *applied: str) -> Any:
    nodes = [
        helper.make_node(op, ["x"], [f"y{i}"], domain="" if op == "Relu" else "own") for i, op in enumerate(applied)
    ]
    return helper.make_function("own", name, ["x"], ["y0"], nodes, [])


def count(*functions: Any, of: str) -> int:
    graph = helper.make_graph([helper.make_node(of, ["x"], ["y"], domain="own")], "g", [], [])
    return count_operators(graph, {(f.domain, f.name, f.overload): f for f in functions})


def test_operators_of_functions_count_where_they_are_applied():
    assert count(function("One", "Relu"), function("Two", "One", "One", "Relu"), of="Two") == 1 + 3 + 2


def test_operators_of_branches_count():
    inner = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "b", [], [])
    graph = helper.make_graph([helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)], "g", [], [])
    assert count_operators(graph, {}) == 3


def test_functions_that_double_are_refused_at_once():
    functions = [function("F0", "Relu"), *[function(f"F{i}", f"F{i - 1}", f"F{i - 1}") for i in range(1, 60)]]
    with pytest.raises(ArtifactError, match="once its functions are inlined"):
        count(*functions, of="F59")


def test_functions_that_apply_themselves_are_refused():
    with pytest.raises(ArtifactError, match="applies itself"):
        count(function("A", "B"), function("B", "Relu", "A"), of="A")


def test_deep_functions_are_refused():
    functions = [function("F0", "Relu"), *[function(f"F{i}", f"F{i - 1}") for i in range(1, 5000)]]
    with pytest.raises(ArtifactError, match=f"more than {MOST_DEPTH} levels"):
        count(*functions, of="F4999")
