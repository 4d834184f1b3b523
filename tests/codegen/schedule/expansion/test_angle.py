"""atan2 against numpy in f64, mpmath, and numpy's tables of the arc tangent; and its special cases."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from graphc.base.dtypes import float32, float64
from tests.codegen.lanes import evaluate, every, operation, powers_of_two, ulps, ulps_exact, worst
from tests.codegen.tables import bit_distance, table

LIMIT_F32, LIMIT_F64 = 1.6, 2.2
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.0]


def coordinates(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of special numbers, those beside 0 and at the end of the range too."""
    info = np.finfo(dtype)
    values = np.array([*SPECIAL, info.max, -info.max, info.tiny, -info.smallest_subnormal], dtype)
    y, x = np.meshgrid(values, values)
    return y.ravel(), x.ravel()


def angle(dtype, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    return evaluate(operation("atan2"), [dtype, dtype], [y, x])


def test_f32_is_near_the_exact_value():
    rng = np.random.default_rng(5)
    around = rng.uniform(-np.pi, np.pi, 400_000)
    bits = every(9973)
    bits = bits[~np.isnan(bits)]
    y = np.concatenate([np.sin(around), rng.uniform(-3, 3, 200_000)]).astype(np.float32)
    x = np.concatenate([np.cos(around), np.ones(200_000)]).astype(np.float32)
    y, x = np.concatenate([y, bits]), np.concatenate([x, rng.permutation(bits)])
    exact = np.arctan2(y.astype(np.float64), x.astype(np.float64))
    error, where = worst("atan2", ulps(angle(float32, y, x), exact), y, x)
    assert error <= LIMIT_F32, where


def test_f64_is_near_the_exact_value():
    rng = np.random.default_rng(6)
    around = rng.uniform(-np.pi, np.pi, 3000)
    y = np.concatenate([np.sin(around), powers_of_two(-1070, 1020, 1000), rng.uniform(-3, 3, 2000)])
    x = np.concatenate([np.cos(around), powers_of_two(-1070, 1020, 1000)[::-1], np.ones(2000)])
    with mpmath.workdps(60):
        exact = [mpmath.atan2(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(y.tolist(), x.tolist(), strict=True)]
        error, where = worst("atan2", ulps_exact(angle(float64, y, x), exact), y, x)
    assert error <= LIMIT_F64, where


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_special_cases_are_those_of_ieee_754(dtype):
    y, x = coordinates(dtype.numpy)
    got, want = angle(dtype, y, x), np.arctan2(y, x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))
    unit = np.finfo(dtype.numpy).eps
    np.testing.assert_allclose(got, want, rtol=2 * unit, atol=np.finfo(dtype.numpy).smallest_subnormal)


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_the_tables_of_numpy_agree(dtype):
    x, want = table("arctan", dtype.long_name)
    assert x.size > 500
    error, where = worst("atan", bit_distance(angle(dtype, x, np.ones_like(x)), want), x)
    assert error <= 3, where


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_angles_of_the_axes_are_exact(dtype):
    y = np.array([0.0, 1.0, 0.0, -1.0, -0.0, -0.0], dtype.numpy)
    x = np.array([1.0, 0.0, -1.0, 0.0, -2.0, 3.0], dtype.numpy)
    want = (np.array([0.0, 0.5, 1.0, -0.5, -1.0, -0.0]) * np.pi).astype(dtype.numpy)
    np.testing.assert_array_equal(angle(dtype, y, x), want)
