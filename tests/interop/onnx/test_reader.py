"""Reading models: what a file must be, functions that are written out, versions, limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import ArtifactError, UnsupportedError

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
    for content, text in ((b"\0not a model", "not an ONNX model: DecodeError"), (b"", "the graph, the format version")):
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


def test_versions_are_given_once():
    proto = relu()
    proto.opset_import.append(helper.make_opsetid("ai.onnx", 18))
    with pytest.raises(ArtifactError, match="is there twice"):
        read_model(proto)


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
