"""Facts about sample operands: reproducible, away from kinks, distinct where that is promised."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.ops import samples


def test_samples_are_reproducible():
    np.testing.assert_array_equal(samples.floats((3, 4), seed=5), samples.floats((3, 4), seed=5))
    assert not np.array_equal(samples.floats((3, 4), seed=5), samples.floats((3, 4), seed=6))


@pytest.mark.parametrize("seed", range(20))
def test_floats_keep_away_from_kinks(seed):
    values = samples.floats((100,), low=-5, high=5, seed=seed)
    assert np.abs(values * 2 - np.rint(values * 2)).min() > 0.039
    assert values.min() >= -5 and values.max() <= 5


def test_distinct_values():
    values = np.sort(samples.distinct((3, 5)).reshape(-1))
    assert np.diff(values).min() > 0.09


@pytest.mark.parametrize("dtype", samples.INTEGERS)
def test_extremes(dtype):
    info = np.iinfo(dtype)
    values = samples.extremes(dtype)
    assert values.dtype == dtype and {info.min, info.max, 0, 1} <= set(values.tolist())


@pytest.mark.parametrize("make", [samples.floats, samples.integers, samples.booleans, samples.distinct])
def test_rank_zero_is_an_array(make):
    assert isinstance(make(()), np.ndarray)


def test_lists_cover_types_and_shapes():
    found = [*samples.binary(kinds="fiub")(), *samples.unary(kinds="fiub")()]
    assert {a.dtype.name for s in found for a in s.operands} == {*samples.FLOATS, *samples.INTEGERS, "bool"}
    assert any(a.size == 0 for s in found for a in s.operands)
    assert any(a.ndim == 0 for s in found for a in s.operands)
    assert all(s.differentiable is False for s in found if s.operands[0].dtype.kind != "f")
