"""Rules for graphs of operators: reading the model reports each fault, before any call."""

from __future__ import annotations

from typing import Any

import pytest

import graphc as gc
from graphc.base.errors import ArtifactError

onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402

from tests.interop.onnx.models import graph_of, model, node, port, weight  # noqa: E402


def branch(*nodes: Any, outputs: str = "b") -> Any:
    return graph_of(*nodes, inputs=[], outputs=outputs)


def choice(then: Any) -> Any:
    other = branch(node("Relu", "x", "b"))
    return node("If", "c", "y", then_branch=then, else_branch=other)


FAULTS = {
    "use of no name": ([node("Relu", "z", "y")], "'z' is used before it is computed"),
    "circle": ([node("Add", "x b", "a"), node("Relu", "a", "b"), node("Relu", "b", "y")], "'b' is used before"),
    "order": ([node("Relu", "a", "y"), node("Relu", "x", "a")], "'a' is used before"),
    "result that nothing computes": ([node("Relu", "x", "z")], "'y' is used before it is computed, or is never"),
    "two definitions": ([node("Relu", "x", "y"), node("Abs", "x", "y")], "'y' is defined twice"),
    "input defined again": ([node("Relu", "x", "x"), node("Relu", "x", "y")], "'x' is defined twice"),
    "too few inputs": ([node("Add", "x", "y")], "1 inputs, its operator takes 2"),
    "too many inputs": ([node("Relu", "x x", "y")], "2 inputs, its operator takes 1"),
    "input left out": ([node("Add", "_ x", "y")], "input 0 is left out"),
    "too many results": ([node("Relu", "x", "y z")], "2 results"),
    "unknown attribute": ([node("Relu", "x", "y", slope=1.0)], "no attribute 'slope'"),
    "attribute of another type": ([node("Transpose", "x", "y", perm="01")], "'perm' has the wrong type"),
    "attribute that is missing": ([node("Cast", "x", "y")], "'to' is missing"),
    "branch that reads no name": (
        [node("Identity", "x", "c"), choice(branch(node("Relu", "q", "b")))],
        "'q' is used before",
    ),
    "branch that reads what comes later": (
        [node("Identity", "x", "c"), choice(branch(node("Relu", "later", "b"))), node("Relu", "x", "later")],
        "'later' is used before",
    ),
}


@pytest.mark.parametrize(("nodes", "text"), FAULTS.values(), ids=FAULTS)
def test_faults_of_graphs_are_told_when_they_are_read(nodes: list[Any], text: str):
    with pytest.raises(ArtifactError, match=text):
        gc.from_onnx(model(graph_of(*nodes), 20))


def test_names_of_inputs_and_initializers_are_given_once():
    with pytest.raises(ArtifactError, match="'x' is defined twice"):
        gc.from_onnx(model(graph_of(node("Relu", "x", "y"), inputs=[port("x", 2), port("x", 2)])))
    with pytest.raises(ArtifactError, match="'w' is there twice"):
        gc.from_onnx(model(graph_of(node("Add", "x w", "y"), weights=[weight("w", [1.0, 2.0])] * 2)))


def test_functions_are_applied_with_what_they_take():
    versions = [helper.make_opsetid("", 17)]
    own = helper.make_function("own", "Twice", ["a"], ["b"], [node("Add", "a a", "b")], versions)
    for inputs, outputs, text in ((["x", "x"], ["y"], "2 inputs"), (["x"], ["y", "z"], "2 results")):
        graph = graph_of(helper.make_node("Twice", inputs, outputs, domain="own"))
        with pytest.raises(ArtifactError, match=text):
            gc.from_onnx(model(graph, functions=[own], own=1))
    outside = helper.make_function("own", "Outside", ["a"], ["b"], [node("Add", "a x", "b")], versions)
    graph = graph_of(helper.make_node("Outside", ["x"], ["y"], domain="own"))
    with pytest.raises(ArtifactError, match="'x' is used before"):
        gc.from_onnx(model(graph, functions=[outside], own=1))


def test_faults_say_at_which_operator_they_are():
    with pytest.raises(ArtifactError) as found:
        gc.from_onnx(model(graph_of(helper.make_node("Relu", ["z"], ["y"], name="head"))))
    assert "Relu head" in str(found.value)
