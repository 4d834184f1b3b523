"""Padding, resizing and rearranging: types, inverses, errors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc.errors import AttributeValueError, ShapeError
from tests.nn.compare import floats, tensor


def test_padding_keeps_the_type():
    assert F.pad(graphc.tensor([1, 2]), (1, 1)).tolist() == [0, 1, 2, 0]
    assert F.pad(graphc.tensor([True]), (1, 0)).tolist() == [False, True]


@pytest.mark.parametrize(
    ("pad", "options", "error", "message"),
    [
        ((1,), {}, AttributeValueError, "does not fit"),
        ((1, 1, 1, 1, 1, 1), {}, AttributeValueError, "does not fit an input with 2 dimensions"),
        ((1, 1), {"mode": "mirror"}, AttributeValueError, "mode 'mirror' is not known"),
        ((1, 1), {"mode": "reflect", "value": 2.0}, AttributeValueError, "takes no value"),
        ((3, 0), {"mode": "reflect"}, ShapeError, "too large for a dimension of size 3"),
        ((4, 0), {"mode": "circular"}, ShapeError, "too large"),
    ],
)
def test_padding_errors(pad: tuple[int, ...], options: dict, error: type, message: str):
    with pytest.raises(error, match=message):
        F.pad(tensor(floats(2, 3)), pad, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either size or scale_factor"),
        ({"size": 3, "scale_factor": 2}, "either size or scale_factor"),
        ({"size": 3, "align_corners": True}, "does not take align_corners"),
        ({"size": 3, "mode": "linear"}, "does not fit 2 spatial dimensions"),
        ({"scale_factor": (1, 2, 3)}, "scale_factor"),
    ],
)
def test_interpolate_errors(options: dict, message: str):
    with pytest.raises(AttributeValueError, match=message):
        F.interpolate(tensor(floats(1, 1, 4, 4)), **options)


def test_unshuffle_undoes_shuffle():
    x = floats(2, 18, 3, 4)
    np.testing.assert_array_equal(F.pixel_unshuffle(F.pixel_shuffle(tensor(x), 3), 3).numpy(), x)


def test_shuffle_errors():
    with pytest.raises(ShapeError, match="factor 2 does not fit 6 channels"):
        F.pixel_shuffle(tensor(floats(1, 6, 2, 2)), 2)
    with pytest.raises(ShapeError, match="does not divide 3 x 4"):
        F.pixel_unshuffle(tensor(floats(1, 6, 3, 4)), 2)
    with pytest.raises(ShapeError, match="4 groups do not divide 6"):
        F.channel_shuffle(tensor(floats(1, 6, 3, 4)), 4)
