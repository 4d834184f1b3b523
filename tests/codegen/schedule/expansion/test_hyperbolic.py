"""sinh and cosh against numpy in f64, mpmath, and numpy's tables."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from graphc.base.dtypes import float32, float64
from tests.codegen.lanes import evaluate, every, operation, powers_of_two, ulps, ulps_exact, worst
from tests.codegen.tables import bit_distance, table

LIMITS = {"sinh": (2.3, 2.1), "cosh": (1.4, 1.2)}
EXACT = {"sinh": np.sinh, "cosh": np.cosh}
MPMATH = {"sinh": mpmath.sinh, "cosh": mpmath.cosh}
ENDS = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 88.8, 89.0, 89.41, 89.42, -89.5, 95.0, 1.0, -1.0, 3e38]


@pytest.mark.parametrize("name", LIMITS)
def test_f32_is_near_the_exact_value_everywhere(name: str):
    usual = np.random.default_rng(7).uniform(-92, 92, 200_000).astype(np.float32)
    near = np.random.default_rng(8).uniform(-3, 3, 200_000).astype(np.float32)
    x = np.concatenate([every(4099), usual, near, np.array(ENDS, np.float32)])
    with np.errstate(all="ignore"):
        exact = EXACT[name](x.astype(np.float64))
    error, where = worst(name, ulps(evaluate(operation(name), [float32], [x]), exact), x)
    assert error <= LIMITS[name][0], where


@pytest.mark.parametrize("name", LIMITS)
def test_f64_is_near_the_exact_value(name: str):
    rng = np.random.default_rng(5)
    ends = [0.0, -0.0, 5e-324, -1e-310, 709.9, 710.47, 710.48, -710.5, 720.0, 1e300]
    x = np.concatenate([ends, rng.uniform(-3, 3, 2000), rng.uniform(-710.6, 710.6, 600), powers_of_two(-60, 4, 600)])
    got = evaluate(operation(name), [float64], [x])
    with mpmath.workdps(60):
        exact = [MPMATH[name](mpmath.mpf(v)) if abs(v) < 1000 else mpmath.mpf("inf") for v in x.tolist()]
        error, where = worst(name, ulps_exact(got, exact), x)
    assert error <= LIMITS[name][1], where


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_the_tables_of_numpy_agree(name: str, dtype):
    x, want = table(name, dtype.long_name)
    error, where = worst(name, bit_distance(evaluate(operation(name), [dtype], [x]), want), x)
    assert error <= 2, where
