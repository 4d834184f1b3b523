"""erfc against mpmath and libm, down to denormal results."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from graphc.base.dtypes import float32, float64
from graphc.ir.kernel.scalar import SCALAR_OPS
from tests.codegen.lanes import evaluate, every, operation, powers_of_two, ulps, ulps_exact, worst

LIMIT_F32, LIMIT_F64 = 3.4, 3.5
ENDS = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e300, 9.19, 10.05, 10.06, 26.5, 26.54, 27.22, 27.3, 28.0, -6.0]


def test_f32_is_near_the_exact_value_everywhere():
    usual = np.random.default_rng(7).uniform(-5, 10.2, 200_000)
    with np.errstate(over="ignore"):
        x = np.concatenate([every(40_009), np.array(ENDS, np.float32), usual.astype(np.float32)])
    with np.errstate(invalid="ignore"):
        exact = SCALAR_OPS["erfc"].reference(x.astype(np.float64))
    error, where = worst("erfc", ulps(evaluate(operation("erfc"), [float32], [x]), exact), x)
    assert error <= LIMIT_F32, where


def test_f64_is_near_the_exact_value_everywhere():
    rng = np.random.default_rng(8)
    x = np.concatenate([ENDS, rng.uniform(-6, 27.3, 2000), rng.uniform(-1, 1, 1000), powers_of_two(-60, 4.7, 500)])
    got = evaluate(operation("erfc"), [float64], [x])
    with mpmath.workdps(60):
        exact = [mpmath.erfc(mpmath.mpf(v)) if abs(v) < 100 else mpmath.mpf(2 if v < 0 else 0) for v in x.tolist()]
        exact = [mpmath.mpf("nan") if v != v else e for v, e in zip(x.tolist(), exact, strict=True)]
        error, where = worst("erfc", ulps_exact(got, exact), x)
    assert error <= LIMIT_F64, where


@pytest.mark.parametrize("x", [2.5, 4.0, 5.0, 6.0, 26.5])
def test_the_tail_does_not_cancel(x: float):
    got = evaluate(operation("erfc"), [float64], [np.array([x])])
    np.testing.assert_allclose(got, float(mpmath.erfc(x)), rtol=1e-15)
