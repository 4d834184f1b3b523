"""sin, cos and tan against numpy in f64, mpmath, and numpy's tables."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from graphc.base.dtypes import float32, float64
from graphc.ir.kernel.large_angle import FROM
from tests.codegen.lanes import evaluate, every, operation, powers_of_two, ulps, ulps_exact, worst
from tests.codegen.tables import bit_distance, table

LIMIT_F32, LIMIT_F64 = {"sin": 1.85, "cos": 1.85, "tan": 1.7}, {"sin": 1.6, "cos": 1.6, "tan": 1.3}
EXACT = {"sin": np.sin, "cos": np.cos, "tan": np.tan}
LEAST_LEFT = 6381956970095103 * 2.0**797
"""The f64 that is nearest to a multiple of pi/2, of all that are beyond 1 (Muller et al., 2010)."""
MPMATH = {"sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan}


def near_multiples(dtype: np.dtype, largest: int) -> np.ndarray:
    """Numbers next to multiples of pi/2, where a result near 0 shows every lost bit of the reduction."""
    multiples = np.random.default_rng(2).integers(0, largest, 2000) * (np.pi / 2)
    return np.concatenate([np.arange(300) * (np.pi / 2), multiples]).astype(dtype)


@pytest.mark.parametrize("name", EXACT)
def test_f32_is_near_the_exact_value_everywhere(name: str):
    usual = np.random.default_rng(7).uniform(-100, 100, 200_000).astype(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-40, 3.4e38], np.float32)
    x = np.concatenate([every(2053), usual, special, near_multiples(np.dtype(np.float32), 1 << 40)])
    with np.errstate(all="ignore"):
        exact = EXACT[name](x.astype(np.float64))
    error, where = worst(name, ulps(evaluate(operation(name), [float32], [x]), exact), x)
    assert error <= LIMIT_F32[name], where


@pytest.mark.parametrize("name", EXACT)
def test_f64_is_near_the_exact_value(name: str):
    x = np.concatenate(
        [
            np.array([0.0, -0.0, 5e-324, -1e-310, FROM, -FROM, np.nextafter(FROM, np.inf), LEAST_LEFT]),
            np.random.default_rng(3).uniform(-10, 10, 1500),
            powers_of_two(-40, 20, 1000),
            powers_of_two(20, 47, 1000),
            powers_of_two(46.9, 1023.99, 2000),
            near_multiples(np.dtype(np.float64), 1 << 45),
        ]
    )
    got = evaluate(operation(name), [float64], [x])
    with mpmath.workdps(400):
        error, where = worst(name, ulps_exact(got, [MPMATH[name](mpmath.mpf(v)) for v in x.tolist()]), x)
    assert error <= LIMIT_F64[name], where


@pytest.mark.parametrize("name", EXACT)
def test_lanes_with_large_angles_leave_others_alone(name: str):
    x = np.array([1.0, 1e300, -1e15, np.inf, -np.inf, np.nan, 0.0, 3.0])
    got = evaluate(operation(name), [float64], [x])
    with mpmath.workdps(400):
        exact = [float(MPMATH[name](mpmath.mpf(v))) for v in x[:3].tolist()]
    np.testing.assert_allclose(got[:3], exact, rtol=1e-15)
    assert np.isnan(got).tolist() == [False] * 3 + [True] * 3 + [False] * 2


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize("name", ["sin", "tan"])
def test_sine_and_tangent_of_minus_zero_are_minus_zero(name: str, dtype):
    zeros = np.array([0.0, -0.0], dtype.numpy)
    assert np.signbit(evaluate(operation(name), [dtype], [zeros])).tolist() == [False, True]


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_the_tables_of_numpy_agree(name: str, dtype):
    x, want = table(name, dtype.long_name)
    assert x.size > 500
    error, where = worst(name, bit_distance(evaluate(operation(name), [dtype], [x]), want), x)
    assert error <= 2, where
