"""Embedding layers."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError, ShapeError
from tests.nn.compare import floats, tensor


def test_initial_values():
    graphc.manual_seed(0)
    layer = nn.Embedding(100, 50, padding_idx=3)
    values = layer.weight.detach().numpy()
    assert abs(values.std() - 1) < 0.05
    np.testing.assert_array_equal(values[3], np.zeros(50))


def test_from_pretrained():
    table = tensor(floats(4, 3))
    frozen = nn.Embedding.from_pretrained(table)
    assert not frozen.weight.requires_grad
    np.testing.assert_array_equal(frozen(graphc.tensor([2, 0])).numpy(), table.numpy()[[2, 0]])
    assert nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad
    with pytest.raises(ShapeError, match="expected a matrix"):
        nn.Embedding.from_pretrained(graphc.zeros(3))


def test_text_and_errors():
    assert repr(nn.Embedding(4, 3, padding_idx=-1, max_norm=2.0)) == "Embedding(4, 3, padding_idx=3, max_norm=2.0)"
    with pytest.raises(AttributeValueError, match="padding_idx 4 is outside of 4 rows"):
        nn.Embedding(4, 3, padding_idx=4)
    with pytest.raises(ShapeError, match=r"is not \[4, 3\]"):
        nn.Embedding(4, 3, _weight=graphc.zeros(3, 4))
