"""Calls that calibration data describes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError
from graphc.quantization.batches import batches_of, run


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
