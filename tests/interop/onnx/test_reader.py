"""Reading models: what a file must be, functions that are written out, versions, limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import ArtifactError, UnsupportedError
from graphc.interop.onnx.reader import MOST_DEPTH, count_operators

onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402

from graphc.interop.onnx import reader  # noqa: E402
from graphc.interop.onnx.reader import read_model  # noqa: E402
from tests.interop.onnx.models import graph_of, model, node, scaled, weight  # noqa: E402


def relu(**options: Any) -> Any:
    return model(graph_of(node("Relu", "x", "y")), **options)


def test_nodes_have_the_defaults_of_their_operators():
    (found,) = read_model(model(graph_of(node("Gelu", "x", "y")), 20)).graph.nodes
    assert found.attributes == {"approximate": "none"} and found.types == (0,)


def test_nodes_without_a_name_are_numbered():
    graph = graph_of(node("Relu", "x", "a"), node("Abs", "a", "y"))
    assert [n.name for n in read_model(model(graph)).graph.nodes] == ["Relu_1", "Abs_2"]


def test_errors_name_the_file(tmp_path: Path):
    path = tmp_path / "a.onnx"
    for content, text in (
        (b"\0not a model", "not an ONNX model: a field has an invalid number"),
        (b"", "the graph, the format version"),
    ):
        path.write_bytes(content)
        with pytest.raises(ArtifactError, match=text) as found:
            read_model(path)
        assert str(path) in str(found.value)
    with pytest.raises(ArtifactError, match="not a regular file"):
        read_model("/dev/null")
    with pytest.raises(FileNotFoundError):
        read_model(tmp_path / "none.onnx")


@pytest.mark.parametrize(
    ("proto", "kind", "text"),
    [
        (lambda: relu(version=5), UnsupportedError, "of version 5"),
        (lambda: relu(version=999), UnsupportedError, "version 999 of the domain ''"),
        (lambda: relu(ir_version=999), UnsupportedError, "format has version 999"),
        (lambda: relu(ir_version=0), ArtifactError, "format version"),
        (lambda: relu(own=-1), ArtifactError, "the operators of 'own' have the invalid version -1"),
        (lambda: relu(own=2**40), ArtifactError, "the operators of 'own' have the invalid version"),
        (
            lambda: model(graph_of(helper.make_node("Q", ["x"], ["y"], domain="q"))),
            UnsupportedError,
            "imports no version",
        ),
    ],
    ids=["old", "new", "new format", "no format", "negative", "large", "no import"],
)
def test_versions_are_checked(proto: Any, kind: type[Exception], text: str):
    with pytest.raises(kind, match=text):
        read_model(proto())


@pytest.mark.parametrize("last", [17, 18])
def test_the_last_version_of_a_domain_counts(last: int):
    proto = relu()
    proto.opset_import.append(helper.make_opsetid("ai.onnx", last))
    assert [n.version for n in read_model(proto).graph.nodes] == [last]


@pytest.mark.parametrize(("domain", "newest"), [("", onnx.defs.onnx_opset_version()), ("com.microsoft", 1)])
def test_a_domain_without_an_import_has_its_newest_version(domain: str, newest: int):
    proto = model(graph_of(helper.make_node("Gelu", ["x"], ["y"], domain=domain)))
    del proto.opset_import[:]
    proto.opset_import.append(helper.make_opsetid("own", 1))
    assert [n.version for n in read_model(proto).graph.nodes] == [newest]


def own(name: str, *nodes: Any, attributes: Any = (), defaults: Any = ()) -> Any:
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, ["a"], ["b"], list(nodes), versions, list(attributes), list(defaults))


def applied(name: str, **attributes: Any) -> Any:
    return helper.make_node(name, ["x"], ["y"], domain="own", **attributes)


def scaling() -> Any:
    """A function that multiplies by its attribute, which is 3 where it is left out."""
    factor = helper.make_node("Constant", [], ["f"])
    reference = factor.attribute.add()
    reference.name, reference.ref_attr_name, reference.type = "value_float", "factor", onnx.AttributeProto.FLOAT
    default = helper.make_attribute("factor", 3.0)
    return own("Scale", factor, node("Mul", "a f", "b"), defaults=[default])


@pytest.mark.parametrize(("attributes", "factor"), [({"factor": 2.0}, 2), ({}, 3)])
def test_functions_of_a_model_take_attributes(attributes: dict[str, float], factor: int):
    proto = model(graph_of(applied("Scale", **attributes)), functions=[scaling()], own=1)
    assert gc.from_onnx(proto)(np.float32([1, 2])).tolist() == [factor, 2 * factor]


@pytest.mark.parametrize("has_rule", [True, False])
def test_operators_without_a_rule_are_written_out_by_their_schema(monkeypatch: pytest.MonkeyPatch, has_rule: bool):
    find = reader.find
    if not has_rule:
        monkeypatch.setattr(
            reader, "find", lambda domain, op, version: None if op == "Elu" else find(domain, op, version)
        )
    proto = model(graph_of(node("Elu", "x", "y")), 18)
    (elu,) = read_model(proto).graph.nodes
    assert (elu.body is None) == has_rule
    x = np.float32([-1, 2])
    np.testing.assert_allclose(gc.from_onnx(proto)(x).numpy(), [np.expm1(-1), 2], rtol=1e-6)


def test_a_constant_of_a_function_is_read_once():
    constant = helper.make_node("Constant", [], ["c"], value=weight("c", np.ones(2, np.float32)))
    nodes = [
        helper.make_node("Plus", ["x"], ["m"], domain="own"),
        helper.make_node("Plus", ["m"], ["y"], domain="own"),
    ]
    proto = model(graph_of(*nodes), functions=[own("Plus", constant, node("Add", "a c", "b"))], own=1)
    first, second = [n.body.nodes[0].attributes["value"] for n in read_model(proto).graph.nodes]
    assert first is second


def test_texts_that_are_no_utf8_are_refused():
    data = scaled().SerializeToString().replace(b"fc.scale", b"fc.\xffcale")
    with pytest.raises(ArtifactError, match="UTF-8"):
        read_model(data)


def test_the_number_of_operators_is_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reader, "MOST_NODES", 2)
    with pytest.raises(ArtifactError, match="more than 2 operators"):
        read_model(scaled())


def test_files_larger_than_the_format_allows_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reader, "MOST_BYTES", 10)
    onnx.save(scaled(), tmp_path / "a.onnx")
    with pytest.raises(ArtifactError, match="more than 10 bytes"):
        read_model(tmp_path / "a.onnx")


def test_data_beside_the_file_is_read(tmp_path: Path):
    onnx.save(scaled(), tmp_path / "a.onnx", save_as_external_data=True, location="a.data", size_threshold=0)
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(gc.from_onnx(tmp_path / "a.onnx")(x).tolist(), gc.from_onnx(scaled())(x).tolist())
    with pytest.raises(ArtifactError, match="the model has no folder"):
        read_model((tmp_path / "a.onnx").read_bytes())


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


from tests.interop.onnx.models import port  # noqa: E402


def branch(*nodes: Any, outputs: str = "b") -> Any:
    return graph_of(*nodes, inputs=[], outputs=outputs)


def choice(then: Any) -> Any:
    other = branch(node("Relu", "x", "b"))
    return node("If", "c", "y", then_branch=then, else_branch=other)


FAULTS = {
    "use of no name": ([node("Relu", "z", "y")], "'z' is used before it is computed"),
    "circle": ([node("Add", "x b", "a"), node("Relu", "a", "b"), node("Relu", "b", "y")], "'b' is used before"),
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
    "branch that reads its own result": (
        [node("Identity", "x", "c"), choice(branch(node("Relu", "y", "b")))],
        "'y' is used before",
    ),
}


@pytest.mark.parametrize(("nodes", "text"), FAULTS.values(), ids=FAULTS)
def test_faults_of_graphs_are_told_when_they_are_read(nodes: list[Any], text: str):
    with pytest.raises(ArtifactError, match=text):
        gc.from_onnx(model(graph_of(*nodes), 20))


def test_nodes_may_stand_before_those_that_compute_their_inputs():
    nodes = [node("Add", "a b", "y"), node("Neg", "a", "b"), node("Abs", "x", "a")]
    graph = read_model(model(graph_of(*nodes))).graph
    assert [n.op for n in graph.nodes] == ["Abs", "Neg", "Add"]
    assert gc.from_onnx(model(graph_of(*nodes)))(np.float32([1, -2])).tolist() == [0, 0]


def test_a_branch_may_read_what_a_later_node_computes():
    nodes = [choice(branch(node("Relu", "later", "b"))), node("Relu", "x", "later"), node("Identity", "x", "c")]
    assert [n.op for n in read_model(model(graph_of(*nodes), 20)).graph.nodes] == ["Relu", "Identity", "If"]


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
