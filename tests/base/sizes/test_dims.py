"""Dimension and size arguments."""

from __future__ import annotations

import pytest

from graphc.base.sizes.assumptions import Assumptions, assuming
from graphc.base.sizes.dims import common_shape, dim_of, dims_of, same_sizes, sizes_of, view_shape
from graphc.base.sizes.named_dims import Dim
from graphc.errors import ArgumentError, AttributeValueError, IndexRangeError, ShapeError


def test_one_dimension():
    assert [dim_of(d, 3) for d in (0, 2, -1, -3)] == [0, 2, 2, 0]
    assert dim_of(-1, 0) == 0
    for wrong in (3, -4):
        with pytest.raises(IndexRangeError, match="-3 to 2"):
            dim_of(wrong, 3)
    with pytest.raises(ArgumentError, match="must be an int, got str"):
        dim_of("x", 3)


def test_common_shapes():
    assert common_shape((2, 1), [3], ()) == (2, 3)
    assert common_shape() == ()
    with pytest.raises(ShapeError, match=r"\[2\] and \[3\] do not broadcast"):
        common_shape((2,), (3,))


def test_several_dimensions():
    assert dims_of(None, 3) == dims_of((), 3) == (0, 1, 2)
    assert dims_of(-1, 3) == (2,)
    assert dims_of([2, 0], 3) == (0, 2)
    assert dims_of(0, 0) == ()
    with pytest.raises(AttributeValueError, match="listed twice"):
        dims_of((1, -2), 3)
    with pytest.raises(IndexRangeError):
        dims_of(1, 0)


def test_sizes():
    assert sizes_of((2, 3)) == sizes_of(((2, 3),)) == sizes_of(([2, 3],)) == (2, 3)
    with pytest.raises(ArgumentError, match="consists of ints"):
        sizes_of((2, "3"))


def test_shapes_with_an_unknown_size():
    assert view_shape((2, -1), 6) == (2, 3)
    assert view_shape((0, 5), 0) == (0, 5)
    for sizes, count in [((-1, 0), 0), ((4, -1), 6), ((-1, -1), 6), ((-2, 3), 6), ((5,), 6)]:
        with pytest.raises(ShapeError):
            view_shape(sizes, count)


def test_shapes_are_compared_without_a_question():
    n = Dim("n", 1, 8)
    with assuming(Assumptions()) as assumptions:
        assert same_sizes((n, 3), (n, 3)) and same_sizes((), ())
        assert not same_sizes((n, 3), (2, 3)) and not same_sizes((n,), (n, 1)) and not same_sizes((n,), (n + 1,))
    assert not assumptions.found
