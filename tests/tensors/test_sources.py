"""Tensors of data, buffers and memory with strides."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import ArgumentError, AttributeValueError


def test_asarray_shares_what_it_can():
    array = np.zeros(2, np.float32)
    shared, copied = graphc.asarray(array), graphc.asarray(array, copy=True)
    array[0] = 5
    assert shared.tolist() == [5, 0] and copied.tolist() == [0, 0]
    x = graphc.ones(2)
    assert graphc.asarray(x) is x and graphc.asarray([1, 2]).dtype is graphc.int64
    assert graphc.asarray(x, dtype=graphc.float64).dtype is graphc.float64
    assert graphc.asarray(x, requires_grad=True).is_leaf and not x.requires_grad
    assert not graphc.asarray(x.clone().requires_grad_()).requires_grad


def test_asarray_says_what_it_cannot_share():
    with pytest.raises(AttributeValueError, match="cannot be shared"):
        graphc.asarray([1.0], copy=False)
    with pytest.raises(AttributeValueError, match="cannot be shared"):
        graphc.asarray(graphc.ones(2), dtype=graphc.float64, copy=False)


def test_buffers():
    memory = bytearray(np.arange(4, dtype=np.float32).tobytes())
    found = graphc.frombuffer(memory, dtype=graphc.float32, count=2, offset=4)
    assert found.tolist() == [1, 2] and graphc.asarray(memory).tolist() == [0, 1, 2, 3]
    memory[4:8] = np.float32(9).tobytes()
    assert found[0].item() == 9
    with pytest.raises(AttributeValueError, match="frombuffer"):
        graphc.frombuffer(memory, dtype=graphc.float32, count=9)


def test_numbers():
    assert graphc.scalar_tensor(3).dtype is graphc.float32 and graphc.scalar_tensor(3, dtype=graphc.int64).item() == 3
    assert graphc.range(1, 2, 0.5).tolist() == [1, 1.5, 2] and graphc.range(0, 3).tolist() == [0, 1, 2, 3]
    assert graphc.fill(graphc.ones(2), 4).tolist() == [4, 4]
    with pytest.raises(ArgumentError, match="start and end"):
        graphc.range(3)


def test_strides():
    x = graphc.empty_strided((2, 3), (1, 2), dtype=graphc.float64)
    assert x.stride() == (1, 2) and x.shape == (2, 3) and x.new_empty_strided((2, 2), (1, 2)).stride() == (1, 2)
    assert graphc.empty_strided((0, 3), (3, 1)).shape == (0, 3)
    x = graphc.empty_permuted((2, 3, 4), (0, 2, 1))
    assert x.shape == (2, 3, 4) and x.stride() == (12, 1, 3)
    with pytest.raises(ArgumentError, match="not an order of 2 dimensions"):
        graphc.empty_permuted((2, 3), (0, 0))
    with pytest.raises(ArgumentError, match="1 strides"):
        graphc.empty_strided((2, 3), (1,))


def test_range_does_not_come_with_a_star():
    assert "range" not in graphc.__all__
