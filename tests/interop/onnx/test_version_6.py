"""Operators of version 6 compute what they did, by those of version 7."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import errors

onnx = pytest.importorskip("onnx")


def model(node: Any, shapes: dict[str, list[int]], version: int) -> Any:
    make, kind = onnx.helper, onnx.TensorProto.FLOAT
    inputs = [make.make_tensor_value_info(n, kind, s) for n, s in shapes.items()]
    graph = make.make_graph([node], "g", inputs, [make.make_tensor_value_info("y", kind, None)])
    return make.make_model(graph, opset_imports=[make.make_opsetid("", version)], ir_version=3)


def test_the_second_operand_begins_at_the_axis_that_an_attribute_names():
    node = onnx.helper.make_node("Add", ["a", "b"], ["y"], broadcast=1, axis=1)
    module = gc.from_onnx(model(node, {"a": [2, 3, 4, 5], "b": [3, 4]}, 6))
    a, b = gc.randn(2, 3, 4, 5), gc.randn(3, 4)
    assert gc.equal(module(a, b), a + b.reshape(3, 4, 1))
    assert gc.equal(gc.compile(module)(a, b), a + b.reshape(3, 4, 1))


def test_slopes_of_prelu_are_one_a_channel_or_one_for_all():
    node = onnx.helper.make_node("PRelu", ["x", "s"], ["y"])
    x = gc.randn(2, 3, 4)
    for slope in (gc.rand(3), gc.rand(1)):
        module = gc.from_onnx(model(node, {"x": [2, 3, 4], "s": list(slope.shape)}, 6))
        assert gc.equal(module(x, slope), gc.where(x < 0, x * slope.reshape(-1, 1), x))


def test_operators_that_are_the_same_in_version_6_are_read_of_older_ones():
    node = onnx.helper.make_node("Floor", ["x"], ["y"])
    module = gc.from_onnx(model(node, {"x": [3]}, 6))
    assert module(np.array([0.5, -0.5, 2.0], np.float32)).tolist() == [0, -1, 2]


def test_operators_that_were_others_before_are_refused_with_what_converts_them():
    node = onnx.helper.make_node("Pad", ["x"], ["y"], paddings=[1, 1])
    with pytest.raises(errors.UnsupportedError, match=r"Pad of version 1(.|\n)*convert_version"):
        gc.from_onnx(model(node, {"x": [3]}, 1))
