"""Tests of window geometry: views, their transpose, positions."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.errors import AttributeValueError, ShapeError
from graphc.ir.kernel.index import Axis, as_index
from graphc.ops.reduction.sliding import Sliding, inside

CASES = [
    (Sliding((3, 2), (2, 1), ((1, 0), (0, 2)), (1, 3)), (6, 7)),
    (Sliding((2,), (3,), ((0, 0),), (1,)), (8,)),
    (Sliding((3,), (1,), ((2, 2),), (2,)), (5,)),
]


@pytest.mark.parametrize("slide,sizes", CASES)
def test_windows_by_definition(slide, sizes):
    x = np.random.default_rng(0).standard_normal((2, *sizes))
    view = slide.windows(x, -7.0)
    counts = slide.output("test", sizes)
    assert view.shape == (2, *counts, *slide.kernel)
    for window in np.ndindex(*counts):
        for at in np.ndindex(*slide.kernel):
            place = [p.constant for p in slide.position(window, at)]
            valid = all(0 <= p < n for p, n in zip(place, sizes, strict=True))
            expected = x[(slice(None), *place)] if valid else np.full(2, -7.0)
            np.testing.assert_array_equal(view[(slice(None), *window, *at)], expected)


@pytest.mark.parametrize("slide,sizes", CASES)
def test_add_windows_is_the_transpose(slide, sizes):
    random = np.random.default_rng(0)
    x = random.standard_normal((2, *sizes))
    y = random.standard_normal((2, *slide.output("test", sizes), *slide.kernel))
    np.testing.assert_allclose(np.vdot(slide.windows(x), y), np.vdot(x, slide.add_windows(y, sizes)))


def test_position_and_guard():
    slide = Sliding((3,), (2,), ((1, 0),), (4,))
    window, at = as_index(Axis("w", 5)), as_index(Axis("k", 3))
    (place,) = slide.position((window,), (at,))
    assert str(place) == "4*k + 2*w - 1"
    assert [(b.low, b.high) for b in inside((place,), (9,))] == [(0, 9)]
    assert slide.extent == (9,) and slide.overlaps and slide.is_padded


def test_errors():
    with pytest.raises(ShapeError, match="window of 9 elements does not fit an input of 7 padded by 1 and 0"):
        Sliding((3,), (2,), ((1, 0),), (4,)).output("test", (7,))
    with pytest.raises(AttributeValueError, match="padding must be pairs"):
        Sliding((3,), (2,), ((1, 0, 2),), (4,)).check("test")
    with pytest.raises(AttributeValueError, match="dilation must be positive"):
        Sliding((3,), (2,), ((1, 0),), (0,)).check("test")
