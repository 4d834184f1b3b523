"""Embeddings and one-hot vectors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc.errors import AttributeValueError, DTypeError, IndexRangeError
from tests.nn.compare import floats, tensor


def test_repeated_rows_add_their_gradients():
    weight = tensor(floats(3, 2), requires_grad=True)
    F.embedding(graphc.tensor([1, 1, 2]), weight).sum().backward()
    np.testing.assert_array_equal(weight.grad.numpy(), [[0, 0], [2, 2], [1, 1]])


def test_max_norm_as_torch(torch):
    array, ids = floats(5, 3) * 3, np.array([0, 2, 2, 4])
    ours, theirs = tensor(array), torch.tensor(array)
    mine = F.embedding(tensor(ids), ours, max_norm=1.0)
    other = torch.nn.functional.embedding(torch.tensor(ids), theirs, max_norm=1.0)
    np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-6)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)
    np.testing.assert_array_equal(ours.numpy()[1], array[1])


def test_embedding_errors():
    weight = tensor(floats(3, 2))
    with pytest.raises(DTypeError, match="indices must be integers, got f32"):
        F.embedding(graphc.zeros(2), weight)
    with pytest.raises(IndexRangeError):
        F.embedding(graphc.tensor([3]), weight)
    with pytest.raises(AttributeValueError, match="padding_idx 3 is outside of 3 rows"):
        F.embedding(graphc.tensor([0]), weight, padding_idx=3)


def test_one_hot_errors():
    with pytest.raises(DTypeError, match="class indices must be integers"):
        F.one_hot(graphc.zeros(2), 3)
    with pytest.raises(AttributeValueError, match="must be positive"):
        F.one_hot(graphc.tensor([0]), 0)
