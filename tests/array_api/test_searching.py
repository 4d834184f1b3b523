"""Functions that look for elements, order and pick them."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.array_api as xp
from graphc.array_api import Array
from graphc.base.errors import ArgumentError, AttributeValueError

VALUES = np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 5.0]], np.float32)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places_of_extremes(name):
    for options in ({}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"keepdims": True}):
        result = getattr(xp, name)(gc.tensor(VALUES), **options)
        assert type(result) is Array and result.dtype is gc.int64
        np.testing.assert_array_equal(np.asarray(result), getattr(np, name)(VALUES, **options))


def test_places_that_are_not_zero():
    result = xp.nonzero(xp.asarray([[0, 1], [2, 0]]))
    assert [f.tolist() for f in result] == [[0, 1], [1, 0]] and type(result[0]) is Array
    with pytest.raises(ArgumentError, match="without axes"):
        xp.nonzero(xp.asarray(1))


def test_places_in_a_sorted_vector():
    sorted_vector = xp.asarray([1.0, 2.0, 2.0, 4.0])
    assert xp.searchsorted(sorted_vector, xp.asarray([2.0, 9.0])).tolist() == [1, 4]
    assert xp.searchsorted(sorted_vector, 2, side="right").item() == 3
    shuffled, order = xp.asarray([4.0, 1.0, 2.0]), xp.asarray([1, 2, 0])
    assert xp.searchsorted(shuffled, xp.asarray([3.0], dtype=xp.float64), sorter=order).tolist() == [2]
    with pytest.raises(AttributeValueError, match="side"):
        xp.searchsorted(sorted_vector, 1.0, side="both")


def test_where_promotes_both():
    condition = xp.asarray([True, False])
    assert xp.where(condition, xp.ones(2), xp.zeros((), dtype=xp.float64)).dtype is gc.float64
    assert xp.where(condition, xp.asarray([1, 2]), 0).tolist() == [1, 0]


def test_entries_are_taken_along_an_axis():
    x = gc.tensor(VALUES)
    assert xp.take(x, xp.asarray([-1, 0]), axis=1).tolist() == VALUES[:, [-1, 0]].tolist()
    assert xp.take(x[0], xp.asarray([2])).tolist() == [2.0]
    places = np.array([[0, -1], [2, 2]])
    assert xp.take_along_axis(x, gc.tensor(places)).tolist() == np.take_along_axis(VALUES, places, -1).tolist()
    with pytest.raises(ArgumentError, match="which of 2 axes"):
        xp.take(x, xp.asarray([0]))


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("descending", [False, True])
def test_order_keeps_equal_elements_as_they_were(axis, descending):
    x = gc.tensor(VALUES)
    expected = np.sort(VALUES, axis=axis)
    expected = np.flip(expected, axis=axis) if descending else expected
    assert xp.sort(x, axis=axis, descending=descending).tolist() == expected.tolist()
    places = xp.argsort(x, axis=axis, descending=descending)
    assert xp.take_along_axis(x, places, axis=axis).tolist() == expected.tolist()
    assert xp.argsort(xp.zeros(4), descending=descending).tolist() == [0, 1, 2, 3]


def test_distinct_elements_are_counted_and_found():
    x = xp.asarray([[2.0, 1.0], [2.0, float("nan")]])
    result = xp.unique_all(x)
    assert result.values.tolist()[:2] == [1.0, 2.0] and result.counts.tolist() == [1, 2, 1]
    assert result.indices.tolist() == [1, 0, 3] and result.inverse_indices.tolist() == [[1, 0], [1, 2]]
    assert [type(f) for f in result] == [Array] * 4
    assert xp.unique_counts(x).counts.tolist() == [1, 2, 1]
    assert xp.unique_inverse(x).inverse_indices.shape == (2, 2)
    assert xp.unique_values(xp.asarray([float("nan")] * 2)).shape == (2,)


def test_distinct_elements_keep_their_gradient():
    x = gc.tensor([2.0, 1.0, 2.0], requires_grad=True)
    xp.sum(xp.unique_values(x) * xp.asarray([1.0, 10.0])).backward()
    assert x.grad.tolist() == [10.0, 1.0, 0.0]


@pytest.mark.parametrize("function", [xp.nonzero, xp.unique_all, xp.unique_values, lambda x: xp.repeat(x, x)])
def test_results_of_a_size_that_depends_on_values_are_compiled(function):
    x = xp.asarray([3, 0, 3, 1])
    for result, expected in zip(*map(_flat, (gc.compile(function)(x), function(x))), strict=True):
        assert result.tolist() == expected.tolist()


def _flat(results):
    return results if isinstance(results, tuple) else (results,)


def test_elements_among_others():
    assert xp.isin(xp.asarray([1, 2, 3]), xp.asarray([3, 1])).tolist() == [True, False, True]
    assert xp.isin(xp.asarray([1, 2]), 2, invert=True).tolist() == [True, False]
    assert xp.isin(1, xp.asarray([[1]], dtype=xp.int8)).item() is True


def test_order_and_choice_are_compiled():
    def chosen(x):
        return xp.where(xp.sort(x) > 1.5, xp.take(x, xp.argsort(x)), 0.0)

    x = gc.tensor([3.0, 1.0, 2.0])
    assert gc.compile(chosen)(x).tolist() == chosen(x).tolist() == [0.0, 2.0, 3.0]
