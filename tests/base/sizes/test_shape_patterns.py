"""Shapes with named dimensions, and the sizes that these have in a call."""

import numpy as np
import pytest

from graphc.base.sizes.named_dims import Dim
from graphc.base.sizes.shape_patterns import Number, ShapePatterns, as_pattern
from graphc.errors import ArgumentError, ShapeError

BATCH, TIME, SIDE = Dim("batch", 1, 64), Dim("time", 1, 512), Dim("side", 1, 40)


def solved(patterns, *shapes):
    return {d.name: n for d, n in patterns.solve(shapes).items()}


def test_sizes_follow_from_shapes():
    patterns = ShapePatterns([(BATCH, TIME, 8), (TIME * BATCH,)], ["x", "y"])
    assert solved(patterns, (3, 5, 8), (15,)) == {"batch": 3, "time": 5}


def test_a_multiple_gives_its_dimension():
    patterns = ShapePatterns([(16 * SIDE, 16 * SIDE + BATCH), (TIME + SIDE,)], ["x", "y"])
    assert solved(patterns, (32, 40), (9,)) == {"side": 2, "batch": 8, "time": 7}


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((65, 5, 16), (65,)), r"batch is 65, outside of 1..64 \(dimension 0 of x\)"),
        (((3, 5, 16), (4,)), r"dimension 0 of y is 4, not 3 = batch \(batch is dimension 0 of x\)"),
        (((3, 5, 17), (3,)), "dimension 2 of x is 17, and no side gives"),
        (((3, 5, 656), (3,)), r"side is 41 \(16\*side = 656\), outside of 1..40"),
        (((3, 6, 16), (3,)), "dimension 1 of x is 6, not 5"),
        (((3, 5), (3,)), r"x has 2 dimensions, not 3: \[batch,5,16\*side\]"),
    ],
)
def test_shapes_that_do_not_fit_are_told_with_the_dimension(shapes, message):
    patterns = ShapePatterns([(BATCH, 5, 16 * SIDE), (BATCH,)], ["x", "y"])
    with pytest.raises(ShapeError, match=message):
        patterns.solve(shapes)


def test_a_dimension_that_follows_from_nothing_is_refused():
    with pytest.raises(ArgumentError, match="no size of the arguments tells what batch, time is"):
        ShapePatterns([(BATCH * TIME,)], ["x"])


def test_two_dimensions_of_one_name_are_refused():
    with pytest.raises(ArgumentError, match="two dimensions are named time"):
        ShapePatterns([(TIME, Dim("time", 1, 8))], ["x"])


POS = Dim("pos", 0, 9)


def test_a_number_gives_its_dimension():
    patterns = ShapePatterns([(BATCH, POS + 1), Number((POS,)), Number((POS + BATCH,))], ["x", "pos", "last"])
    assert solved(patterns, (3, 6), (5,), (8,)) == {"batch": 3, "pos": 5}
    for numbers, message in {
        (5, 9): r"the number last is 9, not 8 = batch \+ pos \(batch is dimension 0 of x, pos is the number pos\)",
        (10, 13): r"pos is 10, outside of 0..9 \(the number pos\)",
    }.items():
        with pytest.raises(ArgumentError, match=message):
            patterns.solve([(3, 6), (numbers[0],), (numbers[1],)])


@pytest.mark.parametrize("value", [3, np.int8(3), np.array(3), POS])
def test_whole_numbers_are_taken(value):
    (found,) = as_pattern(value, Number((POS,)))
    assert found is POS if value is POS else found == 3


@pytest.mark.parametrize("value", [True, np.bool_(True), 3.0, "3", None, np.ones(1, int), np.array(3.0)])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(ArgumentError, match="pos is a whole number, not"):
        as_pattern(value, Number((POS,)))
