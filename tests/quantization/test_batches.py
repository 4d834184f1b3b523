"""Calls that calibration data describes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError
from graphc.quantization.batches import attached, batches_of, input_of, run


class Two(nn.Module):
    def forward(self, a: Any, b: Any = 1.0) -> Any:
        return a + b


def results(model: nn.Module, data: Any) -> list[Any]:
    return [run(model, batch).tolist() for batch in batches_of(model, data)]


def test_elements_are_tensors_tuples_or_dictionaries():
    data = [
        gc.ones(1),
        np.ones(1, np.float32),
        (gc.ones(1), gc.ones(1) * 3),
        {"b": gc.ones(1), "a": np.zeros(1), "label": 3},
    ]
    assert results(Two(), data) == [[2.0], [2.0], [4.0], [1.0]]


def test_labels_that_forward_does_not_take_are_left_out():
    loader = gc.data.DataLoader(gc.data.TensorDataset(gc.arange(4.0), gc.arange(4)), batch_size=2)
    assert results(nn.ReLU(), loader) == [[0.0, 1.0], [2.0, 3.0]]


def test_one_tensor_is_no_list_of_inputs():
    with pytest.raises(ArgumentError, match=r"pass a list: \[x\]"):
        results(nn.ReLU(), gc.ones(3))
    with pytest.raises(ArgumentError, match="int is no iterable"):
        results(nn.ReLU(), 3)


def test_hooks_are_removed_also_after_an_error():
    model, calls = nn.ReLU(), list[Any]()
    hook = model.register_forward_pre_hook(lambda module, args: calls.append(args))
    with pytest.raises(ArgumentError), attached(iter([hook])):
        model("text")  # type: ignore[arg-type]
    model(gc.ones(1))
    assert calls == [("text",)]


def test_the_input_of_a_layer_is_positional_or_named():
    x = gc.ones(1)
    assert input_of((x,), {}) is x and input_of((), {"input": x}) is x
