"""Weights by which dimensions of images are brought to other sizes."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.errors import DTypeError
from graphc.nn.functional.resampling import nearest, weighted
from tests.nn.compare import floats, tensor


def test_places_are_rounded_as_32_bit_products():
    x = tensor(np.arange(5.0))
    np.testing.assert_array_equal(nearest(x, 0, 8, 5 / 8, 0.0).numpy(), [0, 0, 1, 1, 2, 3, 3, 4])


@pytest.mark.parametrize("cubic", [False, True])
@pytest.mark.parametrize("align_corners", [False, True])
def test_weights_of_every_place_sum_to_one(cubic: bool, align_corners: bool):
    same = weighted(tensor(np.full((2, 7), 3.0)), 1, 11, 7 / 11, align_corners, cubic).numpy()
    np.testing.assert_allclose(same, np.full((2, 11), 3.0), rtol=1e-14)
    white = weighted(tensor(np.full((2, 7), 255, np.uint8)), 1, 11, 7 / 11, align_corners, cubic).numpy()
    np.testing.assert_array_equal(white, np.full((2, 11), 255))


def test_corners_stay_where_they_are_aligned():
    x = floats(6)
    found = weighted(tensor(x), 0, 11, 6 / 11, True, True).numpy()
    np.testing.assert_allclose(found[::2], x, rtol=1e-12)


def test_whole_numbers_other_than_bytes_have_no_weights():
    with pytest.raises(DTypeError, match=r"cannot weight elements of type i64[\s\S]*try +pass input.float"):
        weighted(tensor(np.arange(4)), 0, 8, 0.5, False, False)
