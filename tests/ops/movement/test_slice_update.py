"""Facts about the update of a slice."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.errors import IndexRangeError
from graphc.ops.movement.slice_update import update_slice
from tests.ops.apply import gradients, run


def test_the_part_stands_in_the_place_of_the_slice():
    x, part = np.arange(20.0).reshape(4, 5), -np.ones((2, 2))
    found = run(lambda a, b: update_slice(a, b, starts=(1, 0), steps=(2, 3)), x, part)
    x[1:4:2, 0:4:3] = -1
    np.testing.assert_array_equal(found, x)


def test_a_part_ends_where_the_tensor_ends_and_no_later():
    update = {"starts": (2,), "steps": (3,)}
    assert run(lambda a, b: update_slice(a, b, **update), np.zeros(6), np.ones(2)).tolist() == [0, 0, 1, 0, 0, 1]
    with pytest.raises(IndexRangeError, match="2 elements from 2 on"):
        run(lambda a, b: update_slice(a, b, **update), np.zeros(5), np.ones(2))


def test_gradients_go_to_what_is_there():
    of_x, of_part = gradients(lambda a, b: update_slice(a, b, starts=(1,), steps=(2,)), np.ones(5), np.ones(2))
    assert of_x.tolist() == [1, 0, 1, 0, 1] and of_part.tolist() == [1, 1]
