"""Attributes of windows: padding by itself, a last window with ceil_mode, counts."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import AttributeValueError
from graphc.interop.onnx.ops.windows import pairs, split, window_of
from graphc.nn.functional.spatial import padded


def test_padding_is_given_as_all_that_is_before_then_all_behind():
    assert pairs([1, 2, 3, 4], 2) == ((1, 3), (2, 4))
    assert pairs(None, 2) == ((0, 0), (0, 0))


def test_padding_for_another_rank_is_an_error():
    with pytest.raises(AttributeValueError, match="spatial dimensions"):
        pairs([1, 2], 2)


@pytest.mark.parametrize(("mode", "expected"), [("SAME_UPPER", (1, 2)), ("SAME_LOWER", (2, 1))])
def test_an_odd_padding_is_larger_on_the_side_that_the_mode_names(mode, expected):
    assert split(3, mode) == expected


@pytest.mark.parametrize(("size", "stride", "count"), [(7, 2, 4), (8, 3, 3), (3, 5, 1)])
def test_same_padding_gives_as_many_windows_as_strides_fit(size, stride, count):
    assert window_of((size,), (3,), (stride,), None, None, "SAME_UPPER").counts == (count,)


def test_a_last_window_covers_elements_behind_the_padding():
    way = window_of((6,), (3,), (2,), (0, 0), None, ceil_mode=1)
    assert (way.overhang, way.counts, way.covered) == ((1,), (3,), ((0, 1),))


def test_a_last_window_does_not_start_in_the_padding_behind():
    assert window_of((3,), (1,), (2,), (1, 1), None, ceil_mode=1).counts == (2,)


def test_negative_padding_cuts():
    found = padded(gc.arange(5.0), ((-1, 2),), 7)
    np.testing.assert_array_equal(found.numpy(), [1, 2, 3, 4, 7, 7])
