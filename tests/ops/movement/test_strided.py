"""Facts about as_strided: what overlaps, and that each element's gradient is added at its place."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.ops.movement.strided import as_strided, overlaps
from tests.ops.apply import gradients, run


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [((3, 2), (2, 1), False), ((2, 3), (1, 2), False), ((3, 2), (1, 1), True), ((4,), (0,), True), ((1,), (0,), False)],
)
def test_which_strides_overlap(shape: tuple[int, ...], strides: tuple[int, ...], expected: bool):
    assert overlaps(shape, strides) is expected


def test_elements_are_those_at_their_offsets():
    x = np.arange(12.0).reshape(3, 4)
    found = run(lambda v: as_strided(v, shape=(3, 2), strides=(1, 5), offset=2), x)
    np.testing.assert_array_equal(found, [[2, 7], [3, 8], [4, 9]])


def test_gradients_of_elements_that_are_read_twice_add_up():
    (found,) = gradients(lambda v: as_strided(v, shape=(3, 2), strides=(1, 1)), np.ones((2, 3)))
    np.testing.assert_array_equal(found, [[1, 2, 2], [1, 0, 0]])
