"""Parts of models in Python as text."""

import json

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from graphc.interop.onnx.text_record import read_parts, write_parts
from tests.interop.onnx.alike import module_of
from tests.interop.onnx.text_models import CLASSIFIER, classifier


def _record() -> dict:
    parts = classifier().host_parts
    assert parts is not None
    return json.loads(parts.record())


def test_a_record_is_read_as_it_was_written() -> None:
    parts = classifier().host_parts
    assert parts is not None
    text = parts.record()
    assert write_parts(*read_parts(text)) == text


def test_numbers_texts_and_graphs_of_attributes_stay() -> None:
    module = module_of(f"{CLASSIFIER.replace('zeros=1', 'zeros=0')}")
    assert module.host_parts is not None
    _, _, before, after, _, _ = read_parts(module.host_parts.record())
    (encoder,), (labels, _) = before.nodes, after.nodes
    assert encoder.attributes["cats_strings"] == ("red", "green", "blue")
    assert encoder.attributes["zeros"] == 0
    assert labels.attributes["keys_int64s"] == (0, 1)


def test_floats_that_json_lacks_stay() -> None:
    module = module_of("""(string[N] x) => (float y) <float[2] c = {1.5, -2.25}> {
        i = ai.onnx.ml.LabelEncoder<keys_strings=["a"], values_floats=[0.1], default_float=3.4e38>(x)
        s = Cast<to=8>(c) j = ai.onnx.ml.LabelEncoder<keys_strings=["1.5"], values_floats=[7.0]>(s) y = Add(i, j)
    }""")
    parts = module.host_parts
    assert parts is not None
    graph = read_parts(parts.record())[2]
    assert graph.nodes[0].attributes["default_float"] == pytest.approx(3.4e38)
    assert graph.constants["c"].array.tolist() == [1.5, -2.25]
    assert graph.constants["c"].array.dtype == np.float32


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda r: r["before"]["nodes"][0].update(op="Missing"), "no rule"),
        (lambda r: r["before"]["nodes"][0].update(inputs=["nothing"]), "not computed before"),
        (lambda r: r["before"].update(nodes=[]), "never computed"),
        (lambda r: r["before"]["nodes"][0].update(version="x"), "damaged"),
        (lambda r: r["before"].update(constants={"c": [99, [], ""]}), "element type 99"),
        (lambda r: r["before"].update(constants={"c": [1, [5], "AAAA"]}), "damaged"),
        (lambda r: r.update(inputs=[{"name": "x"}]), "damaged"),
        (lambda r: r.pop("program"), "damaged"),
    ],
)
def test_a_damaged_record_is_an_error(damage, message: str) -> None:
    record = _record()
    damage(record)
    with pytest.raises(gc.errors.GraphcError, match=message):
        read_parts(json.dumps(record))


def test_a_text_that_is_no_record_is_an_error() -> None:
    for text in ("", "[]", "{", "null"):
        with pytest.raises(gc.errors.ArtifactError, match="damaged"):
            read_parts(text)
