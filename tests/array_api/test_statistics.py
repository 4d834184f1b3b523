"""Functions that fold axes, beside those of numpy."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.array_api as xp
from graphc.array_api import Array
from graphc.array_api.statistics import fold, folded_axes
from graphc.base.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError

VALUES = np.array([[3.0, 1.0, 2.5], [0.0, -1.0, 5.0]], np.float32)
AXES = ({}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"axis": (0, 1)}, {"axis": ()}, {"keepdims": True})


@pytest.mark.parametrize("name", ["all", "any", "count_nonzero", "max", "mean", "min", "prod", "std", "sum", "var"])
@pytest.mark.parametrize("options", AXES)
def test_the_function_is_that_of_numpy(name, options):
    result = getattr(xp, name)(gc.tensor(VALUES), **options)
    expected = getattr(np, name)(VALUES, **options)
    assert type(result) is Array and result.shape == expected.shape
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["all", "any", "max", "mean", "min", "prod", "std", "sum", "var"])
def test_an_array_without_axes_folds_to_itself(name):
    for options in ({}, {"axis": ()}, {"keepdims": True}):
        result = getattr(xp, name)(xp.asarray(2.0), **options)
        assert result.shape == () and float(result) == float(getattr(np, name)(np.float32(2.0)))


def test_the_correction_is_subtracted_from_the_count():
    x = gc.tensor(VALUES)
    np.testing.assert_allclose(np.asarray(xp.var(x, axis=1, correction=1)), VALUES.var(1, ddof=1), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(xp.std(x, correction=0.5)), VALUES.std(ddof=0.5), rtol=1e-6)


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_integers_are_added_up_in_64_bits_unless_a_type_is_given(name):
    x = xp.asarray([100, 100], dtype=xp.int8)
    assert getattr(xp, name)(x).dtype is gc.int64
    assert getattr(xp, name)(x, dtype=xp.float64).dtype is gc.float64
    assert getattr(xp, name)(xp.asarray([1, 2], dtype=xp.uint8)).dtype is xp.uint64
    assert getattr(xp, name)(xp.ones(2)).dtype is gc.float32


@pytest.mark.parametrize(("name", "first"), [("cumulative_sum", 0.0), ("cumulative_prod", 1.0)])
def test_running_results_may_start_with_what_changes_nothing(name, first):
    for axis in (0, -1):
        result = getattr(xp, name)(gc.tensor(VALUES), axis=axis, include_initial=True)
        expected = getattr(np, name)(VALUES, axis=axis, include_initial=True)
        np.testing.assert_allclose(np.asarray(result), expected)
        assert result[(0, 0)].item() == first
    with pytest.raises(ArgumentError, match="which of 2 axes"):
        getattr(xp, name)(gc.tensor(VALUES))


def test_differences_of_neighbours():
    x = gc.tensor(VALUES)
    before, behind = np.zeros((2, 1)), np.ones((2, 2), np.float32)
    result = xp.diff(x, n=2, prepend=gc.tensor(before), append=gc.tensor(behind))
    assert result.dtype is gc.float64
    np.testing.assert_allclose(np.asarray(result), np.diff(VALUES, n=2, prepend=before, append=behind))
    assert xp.diff(x, axis=0).tolist() == np.diff(VALUES, axis=0).tolist()


def test_nothing_folds_to_the_neutral_element_or_is_refused():
    empty = xp.ones((0, 2))
    assert xp.sum(empty).item() == 0 and xp.prod(empty, axis=0).tolist() == [1.0, 1.0]
    assert xp.all(empty).item() is True and xp.any(empty).item() is False
    with pytest.raises(ShapeError):
        xp.max(empty)
    with pytest.raises(DTypeError, match="mean"):
        xp.mean(xp.asarray([1, 2]))


def test_the_axes_that_are_folded():
    x = xp.ones((2, 3))
    assert folded_axes("sum", x, None)[1] == (0, 1)
    given, axes = folded_axes("sum", x, ())
    assert given.shape == (2, 3, 1) and axes == (2,)
    assert fold("sum", lambda x, axes, keepdims: (axes, keepdims), x, (), True) == ((2,), False)
    with pytest.raises(IndexRangeError):
        folded_axes("sum", x, 2)
    with pytest.raises(ArgumentError, match="sum"):
        folded_axes("sum", [1.0], None)


def test_folds_are_compiled_with_their_gradients():
    def energy(x):
        return xp.sum(xp.var(x, axis=0) * xp.max(x, axis=0)) + xp.mean(xp.cumulative_sum(x, axis=1))

    a, b = (gc.tensor(VALUES, requires_grad=True) for _ in range(2))
    energy(a).backward()
    gc.compile(energy)(b).backward()
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-5)
