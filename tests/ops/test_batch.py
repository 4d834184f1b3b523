"""Rules that families share: how operands get the dimension of a batch."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.ir.op import REGISTRY
from graphc.ops.batch import BatchedOperand, along_axes, along_axis, leading, move, spread

ARRAY = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)


def test_what_is_the_same_for_all_entries_is_repeated():
    same, other = BatchedOperand(graphc.ones(4), False), BatchedOperand(graphc.ones(3, 4), True)
    assert same.shape == other.shape == (4,)
    assert spread(same, 3).shape == spread(other, 3).shape == (3, 4)
    assert spread(other, 3) is other.value


@pytest.mark.parametrize(("source", "count", "target"), [(0, 1, 2), (2, 1, 0), (0, 2, 1), (1, 1, 1)])
def test_dimensions_are_moved_as_numpy_moves_them(source: int, count: int, target: int):
    places = range(count)
    expected = np.moveaxis(ARRAY, [source + i for i in places], [target + i for i in places])
    np.testing.assert_array_equal(move(graphc.tensor(ARRAY), source, count, target).numpy(), expected)


def test_ops_along_dimensions_count_from_behind_that_of_the_batch():
    entry = BatchedOperand(graphc.tensor(ARRAY), True)
    summed = along_axes(REGISTRY["sum"], 2, [entry], {"axes": (1,), "keepdims": False})
    np.testing.assert_array_equal(summed.numpy(), ARRAY.sum(2))
    running = along_axis(REGISTRY["cumsum"], 2, [entry], {"axis": 0, "reverse": False})
    np.testing.assert_array_equal(running.numpy(), ARRAY.cumsum(1))
    assert leading(REGISTRY["stop_gradient"], 2, [entry], {}).shape == ARRAY.shape
