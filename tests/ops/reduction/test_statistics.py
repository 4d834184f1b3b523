"""Statistics of tensors: rows of native code against numpy, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.errors import AttributeValueError
from graphc.ops.reduction.statistics import BINS, FIELDS, KINDS, row_of, statistics

ALL = " ".join(KINDS)


def rows(x, kinds=ALL):
    """The row of native code, and numpy's."""
    native = gc.compile(lambda t: statistics(t, kinds=kinds))(gc.tensor(x)).numpy()
    return native, row_of(x, kinds)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(), (1,), (7, 5), (3, 4, 5, 6), (5000,), (0, 3)])
def test_native_rows_are_those_of_numpy(shape, dtype):
    x = (np.random.default_rng(0).standard_normal(shape) * 3 + 2).astype(dtype)
    x = np.where(np.random.default_rng(1).random(shape) < 0.2, np.zeros((), dtype), x)
    native, expected = rows(x)
    np.testing.assert_allclose(native[: len(FIELDS)], expected[: len(FIELDS)], rtol=2e-6)
    # An element at an edge may fall to either side.
    assert np.abs(np.cumsum(native[len(FIELDS) :] - expected[len(FIELDS) :])).max() <= x.size / 1000


def test_what_is_not_finite_is_counted_and_left_out():
    x = np.array([[1, np.nan, -np.inf], [3, np.inf, np.nan]], np.float32)
    native, expected = rows(x)
    np.testing.assert_allclose(native, expected, rtol=1e-6)
    found = dict(zip(FIELDS, native, strict=False))
    assert (found["size"], found["nonfinite"], found["nan"]) == (6, 4, 2)
    assert (found["mean"], found["std"], found["min"], found["max"]) == (2, 1, 1, 3)


def test_the_deviation_of_small_differences_from_a_large_mean():
    x = (np.random.default_rng(0).standard_normal(10_000) + 1e4).astype(np.float32)
    native, expected = rows(x, "mean")
    np.testing.assert_allclose(native[2:4], expected[2:4], rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_is_asked_for_is_told(kind):
    native, expected = rows(np.arange(12, dtype=np.float32), kind)
    np.testing.assert_allclose(native, expected, rtol=1e-6)
    assert np.isnan(native[: len(FIELDS)]).any() and np.isfinite(native[: len(FIELDS)]).sum() > 2
    assert native[len(FIELDS) :].sum() == (12 if kind == "histogram" else 0)


def test_a_histogram_of_equal_elements():
    native, expected = rows(np.full(6, 7.0), "histogram")
    np.testing.assert_array_equal(native, expected)
    assert native[len(FIELDS) + BINS // 2] == 6


def test_unknown_kinds():
    with pytest.raises(AttributeValueError, match="unknown statistic 'median'"):
        statistics(gc.ones(3), kinds="mean median")


def test_entries_of_a_batch_have_rows_of_their_own():
    found = gc.vmap(lambda t: statistics(t, kinds="mean"))(gc.tensor([[1.0, 3.0], [5.0, 5.0]]))
    assert found[:, FIELDS.index("mean")].tolist() == [2, 5]
