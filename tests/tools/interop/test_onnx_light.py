"""Image models of the ``onnx`` package with random weights; tools/interop/onnx_light.py compares all nine."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")
from tools.interop import onnx_light


@pytest.mark.parametrize(("name", "against"), [("shufflenet", "onnxruntime"), ("squeezenet", "reference")])
def test_compiled_models_give_what_other_evaluators_give(name: str, against: str):
    if against == "onnxruntime":
        pytest.importorskip("onnxruntime")
    row = onnx_light.compare(name, against)
    assert (row.problem, row.difference < onnx_light.TOLERANCE) == ("", True), row


def test_weights_are_random_and_the_same_each_time():
    first, second = onnx_light.load("squeezenet"), onnx_light.load("squeezenet")
    assert first.SerializeToString() == second.SerializeToString()
    assert all(node.op_type != "ConstantOfShape" for node in first.graph.node)
    assert first.SerializeToString() != onnx_light.load("squeezenet", 1).SerializeToString()
    weights = [onnx_light.numpy_helper.to_array(i) for i in first.graph.initializer if len(i.dims) == 4]
    assert all(np.isfinite(w).all() and w.std() > 0 for w in weights)


def test_the_package_holds_nine_models():
    assert len(onnx_light.names()) == 9
