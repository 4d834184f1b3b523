"""Graphs with texts in three parts."""

import pytest

pytest.importorskip("onnx")
from graphc.interop.onnx.graph import OnnxGraph
from graphc.interop.onnx.reader import read_model
from graphc.interop.onnx.text_split import Split, split_texts
from tests.interop.onnx.alike import proto_of
from tests.interop.onnx.text_models import CLASSIFIER, WORDS


def _split(text: str) -> Split:
    result = split_texts(read_model(proto_of(text)).graph)
    assert result is not None
    return result


def _ops(graph: OnnxGraph) -> list[str]:
    return [node.op for node in graph.nodes]


def _names(ports: list) -> list[str]:
    return [port.name for port in ports]


def test_a_graph_of_numbers_has_no_parts() -> None:
    assert split_texts(read_model(proto_of("(float[N] x) => (float y) { y = Exp(x) }")).graph) is None


def test_texts_come_before_and_labels_after_the_program() -> None:
    parts = _split(CLASSIFIER)
    assert _ops(parts.before) == ["OneHotEncoder"]
    assert _ops(parts.program) == ["Reshape", "Concat", "LinearClassifier"]
    assert _ops(parts.after) == ["LabelEncoder", "ZipMap"]
    assert _names(parts.before.inputs) == ["color"]
    assert _names(parts.program.inputs) == ["x", "hot"]
    assert set(_names(parts.program.outputs)) == set(_names(parts.after.inputs)) == {"label/class", "p"}
    assert _names(parts.after.outputs) == ["label", "scores"]


def test_a_number_computed_from_texts_passes_through_the_program() -> None:
    parts = _split("(string[N] x, string[N] y) => (bool r, string z) { r = Equal(x, y) z = StringConcat(x, y) }")
    assert _ops(parts.before) == ["Equal", "StringConcat"]
    assert (_names(parts.program.inputs), _names(parts.program.outputs)) == (["r"], ["r"])
    assert _ops(parts.program) == _ops(parts.after) == []


def test_columns_that_become_texts_first_are_moved_before_the_program() -> None:
    parts = _split("""(int64[N, 1] a, int64[N, 1] b) => (float y) {
        c = Concat<axis=1>(a, b) t = Cast<to=8>(c) h = ai.onnx.ml.OneHotEncoder<cats_strings=["1", "2"]>(t) y = Exp(h)
    }""")
    assert _ops(parts.before) == ["Concat", "Cast", "OneHotEncoder"]
    assert _ops(parts.program) == ["Exp"]


def test_texts_of_computed_numbers_stay_after_the_program() -> None:
    parts = _split("""(float[N] x) => (float y) {
        e = Exp(x) t = Cast<to=8>(e) l = ai.onnx.ml.LabelEncoder<keys_strings=["1"], values_floats=[3.0]>(t) y = Neg(l)
    }""")
    assert (_ops(parts.before), _ops(parts.program), _ops(parts.after)) == (
        [],
        ["Exp"],
        ["Cast", "LabelEncoder", "Neg"],
    )


def test_words_are_looked_up_before_the_program() -> None:
    parts = _split(WORDS)
    assert _ops(parts.before) == ["StringNormalizer", "LabelEncoder"]
    assert _ops(parts.program) == ["Exp"]
