"""Values that constraints allow, and their names."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.distributions import constraints

NAN = float("nan")


@pytest.mark.parametrize(
    ("constraint", "values", "allowed", "text"),
    [
        (constraints.real, [-1.0, NAN], [True, False], "a number, not NaN"),
        (constraints.positive, [0.0, 2.0], [False, True], "greater than 0"),
        (constraints.nonnegative, [-0.5, 0.0], [False, True], "at least 0"),
        (constraints.less_than(2), [1.0, 2.0], [True, False], "less than 2"),
        (constraints.unit_interval, [0.0, 1.0, 1.5], [True, True, False], "in [0, 1]"),
        (constraints.half_open_interval(0, 1), [0.0, 1.0], [True, False], "in [0, 1)"),
        (constraints.boolean, [0.0, 1.0, 0.5], [True, True, False], "0 or 1"),
        (constraints.nonnegative_integer, [0.0, 1.5, -1.0], [True, False, False], "whole and in [0, inf]"),
        (constraints.integer_interval(1, 3), [1.0, 3.0, 4.0], [True, True, False], "whole and in [1, 3]"),
        (constraints.simplex, [[0.5, 0.5], [0.5, 0.6]], [True, False], "at least 0 with a sum of 1"),
        (constraints.one_hot, [[0.0, 1.0], [1.0, 1.0]], [True, False], "one 1 among zeros"),
        (constraints.real_vector, [[0.0, 1.0], [NAN, 1.0]], [True, False], "a number, not NaN, each of an event"),
        (constraints.multinomial(3), [[1.0, 2.0], [2.0, 2.0]], [True, False], "counts of a total"),
        (constraints.lower_triangular, [[[1.0, 0.0], [1.0, 0.0]], [[1.0, 1.0], [0.0, 1.0]]], [True, False], "a lower"),
        (constraints.lower_cholesky, [[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [3.0, 1.0]]], [False, True], "a lower"),
        (constraints.symmetric, [[[1.0, 2.0], [2.0, 0.0]], [[1.0, 1.0], [0.0, 1.0]]], [True, False], "a symmetric"),
    ],
)
def test_values(constraint, values, allowed, text):
    found = constraint.check(gc.tensor(np.array(values)))
    assert found.tolist() == allowed and repr(constraint).startswith(text)


def test_integers_are_whole():
    assert constraints.positive_integer.check(gc.tensor([0, 2])).tolist() == [False, True]


def test_what_depends_on_parameters_has_no_values_of_its_own():
    assert constraints.is_dependent(constraints.dependent)
    with pytest.raises(NotImplementedError, match="does not define check"):
        constraints.dependent.check(gc.zeros(1))
