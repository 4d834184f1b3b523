"""pow against numpy in f64 and mpmath, and its special cases."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from graphc.base.dtypes import float32, float64
from tests.codegen.lanes import evaluate, operation, ulps, ulps_exact, worst

LIMIT_F32, LIMIT_F64 = 0.7, 1.0
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5, 1e-45, -1e-45]
SPECIAL_F32 = [*SPECIAL, 1e-38, 3.4e38, -3.4e38, 8388607, -8388607, 16777216, 4194303.5, 1 + 2.0**-23, 1 - 2.0**-24]
SPECIAL_F64 = [*SPECIAL, 5e-324, -1e-310, 1.7e308, -1.7e308, 2.0**52 - 1, 2.0**53, 2.0**51 + 0.5, 1 + 2.0**-52]
# log2 of the smallest and largest base, size of the exponents
REGIONS_F32 = [(-126, 128, 1), (-149, 128, 1), (-2, 2, 80), (-0.01, 0.01, 9000), (-1, 1, 10)]
REGIONS_F64 = [
    (-1022, 1023, 1),
    (-1074, 1023, 1),
    (-2, 2, 500),
    (-0.01, 0.01, 90_000),
    (-1e-8, 1e-8, 1e11),
    (-1, 1, 10),
]


def grid(values: list[float], dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """All pairs."""
    x, y = np.meshgrid(np.array(values, dtype), np.array(values, dtype))
    return x.ravel(), y.ravel()


def points(regions: list[tuple[float, float, float]], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Random bases and exponents whose powers mostly stay in range."""
    rng = np.random.default_rng(17)
    bases = [np.exp2(rng.uniform(low, high, count)) for low, high, _ in regions]
    exponents = [rng.uniform(-size, size, count) for _, _, size in regions]
    return np.concatenate(bases), np.concatenate(exponents)


def test_f32_special_cases_are_those_of_ieee_754():
    x, y = grid(SPECIAL_F32, np.float32)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
    error, where = worst("pow", ulps(evaluate(operation("pow"), [float32, float32], [x, y]), exact), x, y)
    assert error <= LIMIT_F32, where


def test_f64_special_cases_are_those_of_ieee_754():
    x, y = grid(SPECIAL_F64, np.float64)
    with np.errstate(all="ignore"):
        want = np.power(x, y)
    got = evaluate(operation("pow"), [float64, float64], [x, y])
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.signbit(got[~np.isnan(want)]), np.signbit(want[~np.isnan(want)]))
    np.testing.assert_allclose(got, want, rtol=3e-16, atol=5e-324)


def test_f32_is_near_the_exact_value():
    x, y = (v.astype(np.float32) for v in points(REGIONS_F32, 100_000))
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
    error, where = worst("pow", ulps(evaluate(operation("pow"), [float32, float32], [x, y]), exact), x, y)
    assert error <= LIMIT_F32, where


def test_f64_is_near_the_exact_value():
    x, y = points(REGIONS_F64, 600)
    got = evaluate(operation("pow"), [float64, float64], [x, y])
    with mpmath.workdps(60):
        exact = [mpmath.power(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
        error, where = worst("pow", ulps_exact(got, exact), x, y)
    assert error <= LIMIT_F64, where


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_powers_with_exact_results_are_exact(dtype):
    x = np.array([2, 3, -5, 7, 10, 1.5, 0.25, -3, 9, 2, 2], dtype.numpy)
    y = np.array([10, 4, 3, 2, 6, 2, -2, 5, 0.5, -1, 0], dtype.numpy)
    want = [1024, 81, -125, 49, 1e6, 2.25, 16, -243, 3, 0.5, 1]
    assert evaluate(operation("pow"), [dtype, dtype], [x, y]).tolist() == want
