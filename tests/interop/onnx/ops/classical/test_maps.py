"""Operators that make and read maps."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from tests.interop.onnx.alike import onnx

X = np.array([[0.25, 0.75], [1.0, 0.0]], np.float32)


def _module(op: str, source: Any, result: Any, **attributes: Any) -> gc.nn.Module:
    helper = onnx.helper
    node = helper.make_node(op, ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    ports = [helper.make_value_info(name, proto) for name, proto in (("x", source), ("y", result))]
    graph = helper.make_graph([node], "g", ports[:1], ports[1:])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return gc.from_onnx(helper.make_model(graph, opset_imports=imports, ir_version=10))


def _tensor(kind: int = 1) -> Any:
    return onnx.helper.make_tensor_type_proto(kind, None)


def _map(key: int, kind: int) -> Any:
    return onnx.helper.make_map_type_proto(key, _tensor(kind))


def test_scores_become_dictionaries() -> None:
    maps = onnx.helper.make_sequence_type_proto(_map(8, 1))
    module = _module("ZipMap", _tensor(), maps, classlabels_strings=["no", "yes"])
    assert module(X) == [{"no": 0.25, "yes": 0.75}, {"no": 1.0, "yes": 0.0}]
    module = _module("ZipMap", _tensor(), maps, classlabels_int64s=[3, 4])
    assert module(X) == [{3: 0.25, 4: 0.75}, {3: 1.0, 4: 0.0}]


def test_a_trace_keeps_scores_as_columns() -> None:
    module = _module("ZipMap", _tensor(), onnx.helper.make_sequence_type_proto(_map(7, 1)), classlabels_int64s=[3, 4])
    graph = gc.trace(module, X)
    assert [value.shape for value in graph.outputs] == [(2, 2)]


def test_another_number_of_classes_is_an_error() -> None:
    module = _module("ZipMap", _tensor(), onnx.helper.make_sequence_type_proto(_map(7, 1)), classlabels_int64s=[3])
    with pytest.raises(gc.errors.AttributeValueError, match="1 classes for 2 columns"):
        module(X)


def test_values_of_a_vocabulary_become_a_row() -> None:
    module = _module("DictVectorizer", _map(8, 1), _tensor(), string_vocabulary=["a", "b", "c"])
    assert module({"c": 2.5, "a": 1.0, "other": 9.0}).tolist() == [[1.0, 0.0, 2.5]]
    module = _module("DictVectorizer", _map(7, 8), _tensor(8), int64_vocabulary=[5, 6])
    assert module({6: "six"}).tolist() == [["", "six"]]


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"cast_to": "TO_FLOAT"}, [[1.5, 2.5]]),
        ({"cast_to": "TO_INT64"}, [[1, 2]]),
        ({"cast_to": "TO_STRING"}, [["1.5", "2.5"]]),
        ({"cast_to": "TO_FLOAT", "map_form": "SPARSE", "max_map": 4}, [[0.0, 1.5, 0.0, 2.5]]),
    ],
)
def test_a_map_becomes_a_tensor(attributes: dict[str, Any], expected: list[Any]) -> None:
    module = _module("CastMap", _map(7, 1), _tensor(), **attributes)
    assert module({3: 2.5, 1: 1.5}).tolist() == expected


def test_a_key_beyond_a_sparse_map_is_an_error() -> None:
    module = _module("CastMap", _map(7, 1), _tensor(), map_form="SPARSE", max_map=3)
    with pytest.raises(gc.errors.AttributeValueError, match="max_map is 3"):
        module({3: 2.5})
