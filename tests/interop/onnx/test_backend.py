"""graphc as a backend in ONNX's sense: prepared models, single nodes, devices."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from graphc.interop.onnx import is_compatible, prepare, run_model, run_node, supports_device  # noqa: E402
from tests.interop.onnx.models import INT64, expected, graph_of, model, node, port, scaled  # noqa: E402

X = np.float32([[1, -2, 3]])


def test_prepared_models_take_sequences_dictionaries_and_arrays():
    prepared = prepare(scaled())
    for inputs in ([X], (X,), {"x": X}, X):
        (result,) = prepared.run(inputs)
        assert isinstance(result, np.ndarray)
        np.testing.assert_allclose(result, expected(X))


def test_results_have_the_types_of_the_model():
    nodes = [node("Cast", "x", "y", to=onnx.TensorProto.FLOAT16), node("Cast", "x", "z", to=onnx.TensorProto.UINT16)]
    result = run_model(model(graph_of(*nodes, outputs="y z")), [np.float32([1, 3])])
    assert [a.dtype for a in result] == [np.float16, np.uint16]


def test_single_nodes_are_run_by_the_newest_version_of_their_operator():
    (result,) = run_node(node("Add", "a b", "c"), [X, X])
    np.testing.assert_array_equal(result, 2 * X)


def test_whole_numbers_stay_whole():
    ports = [port("x", 2, element=INT64)]
    (result,) = run_model(model(graph_of(node("Add", "x x", "y"), inputs=ports)), [np.array([1, 2**40])])
    assert result.tolist() == [2, 2**41]


def test_models_are_compatible_where_all_operators_have_rules():
    assert is_compatible(scaled()) and not is_compatible(scaled(), "CUDA")
    assert not is_compatible(model(graph_of(node("Ununtrium", "x", "y"))))


def test_the_device_is_the_cpu():
    assert supports_device("CPU") and supports_device("CPU:0") and not supports_device("CUDA")
