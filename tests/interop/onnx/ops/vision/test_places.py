"""Elements of images at computed places."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.interop.onnx.ops.vision.places import counting, linear_at, rows_at

IMAGE = np.arange(24.0, dtype=np.float32).reshape(2, 2, 2, 3)


def _at(rows: list[float], columns: list[float]) -> list[gc.Tensor]:
    return [gc.tensor([values, values]) for values in (rows, columns)]


def test_elements_at_whole_places_are_those_of_each_item_and_channel():
    places = _at([0.0, 1.0], [2.0, 0.0])
    result = rows_at(gc.tensor(IMAGE), places, counting(2, places[0]))
    np.testing.assert_array_equal(result.numpy(), IMAGE[:, :, [0, 1], [2, 0]])


@pytest.mark.parametrize(("zeros", "expected"), [(True, [0.0, 0.0]), (False, [0.0, 5.0])])
def test_what_lies_outside_is_zero_or_the_nearest_element(zeros, expected):
    places = _at([-1.0, 4.0], [0.0, 2.0])
    result = rows_at(gc.tensor(IMAGE), places, counting(2, places[0]), zeros)
    np.testing.assert_array_equal(result.numpy()[0, 0], expected)


def test_between_elements_values_are_interpolated_linearly():
    result = linear_at(gc.tensor(IMAGE), _at([0.5], [1.25]))
    np.testing.assert_allclose(result.numpy()[0, 0], [(1.25 + 4.25) / 2])


def test_items_of_the_batch_may_be_named():
    result = linear_at(gc.tensor(IMAGE), [p[:1] for p in _at([0.0], [0.0])], gc.tensor([[1]]))
    np.testing.assert_array_equal(result.numpy(), [[[12.0], [18.0]]])
