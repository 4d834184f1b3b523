"""Arguments of calls as inputs of a model, and results as callers get them."""

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from graphc.interop.onnx.elements import FLOAT, STRING
from graphc.interop.onnx.graph import Port
from graphc.interop.onnx.inputs import Inputs, results_of
from graphc.interop.onnx.values import Value

INPUTS = Inputs([Port("x.1", "tensor", FLOAT, (2,)), Port("t", "tensor", STRING, (1,)), Port("m", "map", None, None)])


def test_arguments_are_bound_by_position_and_by_either_name() -> None:
    x, texts = np.ones(2, np.float32), np.array(["a"], object)
    assert list(INPUTS.names.values()) == ["x_1", "t", "m"]
    for args, kwargs in (((x, texts, {"k": 1.0}), {}), ((x,), {"t": texts, "m": {"k": 1.0}})):
        bound = INPUTS.bind(args, kwargs)
        assert (bound[0].tensor.tolist(), bound[1].array.tolist(), bound[2]) == ([1, 1], ["a"], {"k": 1.0})
    assert INPUTS.bind((), {"x.1": x, "t": texts, "m": {}})[0].tensor.tolist() == [1, 1]


def test_wrong_arguments_are_errors() -> None:
    x, texts = np.ones(2, np.float32), np.array(["a"], object)
    with pytest.raises(gc.errors.ArgumentError, match="lacks t, m"):
        INPUTS.bind((x,), {})
    with pytest.raises(gc.errors.ArgumentError, match="'z' is not an input"):
        INPUTS.bind((x, texts, {}), {"z": x})
    with pytest.raises(gc.errors.ShapeError):
        INPUTS.bind((np.ones(3, np.float32), texts, {}), {})


def test_results_are_tensors_texts_and_dictionaries() -> None:
    texts = np.array(["a"], object)
    assert isinstance(results_of(Value.of(np.ones(2, np.float32))), gc.Tensor)
    assert results_of(Value(STRING, None, texts)) is texts
    assert results_of([{"a": 1.0}, None]) == [{"a": 1.0}, None]
