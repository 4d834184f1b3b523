"""Incomplete gamma functions in native code, and how gamma variates change, against mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import graphc as gc
from graphc.ops.pointwise import gamma

GRID = [(a, a * ratio) for a in (0.01, 0.4, 1.0, 2.5, 20.0, 400.0) for ratio in (0.3, 0.9, 1.0, 1.05, 2.0)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("upper", [False, True])
def test_native_code_is_near_the_exact_value(upper: bool, dtype: type):
    a, x = np.array(GRID, dtype).T.copy()
    with mpmath.workdps(40):
        bounds = [(v, mpmath.inf) if upper else (0, v) for v in x.tolist()]
        want = [float(mpmath.gammainc(b, *ends, regularized=True)) for b, ends in zip(a.tolist(), bounds, strict=True)]
    function = gamma.gammaincc if upper else gamma.gammainc
    got = gc.compile(lambda a, x: function(a, x))(gc.tensor(a), gc.tensor(x)).numpy()
    assert got.dtype == dtype
    # What is the difference to 1 has the rounding unit of 1.
    np.testing.assert_allclose(got, want, 2e-13 if dtype is np.float64 else 1e-6, np.finfo(dtype).eps)


@pytest.mark.parametrize("compiled", [False, True])
def test_small_shares_and_large_concentrations_keep_their_digits(compiled: bool):
    a = np.array([8.0, 10.0, 30.0, 300.0, 453203.7, 633064.5])
    x = np.array([1e-17, 1e-10, 1e-3, 100.0, 451120.9, 630100.1])
    with mpmath.workdps(40):
        want = [float(mpmath.gammainc(b, 0, v, regularized=True)) for b, v in zip(a.tolist(), x.tolist(), strict=True)]
    function = gc.compile(lambda a, x: gamma.gammainc(a, x)) if compiled else gamma.gammainc
    np.testing.assert_allclose(function(gc.tensor(a), gc.tensor(x)).numpy(), want, 3e-13)


def exact_slope(concentration: float, log: float) -> float:
    """Minus the derivative of the distribution function by the concentration, over that by the logarithm."""
    with mpmath.workdps(30):
        x = mpmath.exp(mpmath.mpf(log))
        below = mpmath.diff(lambda a: mpmath.gammainc(a, 0, x, regularized=True), mpmath.mpf(concentration))
        return float(-below / (x**concentration * mpmath.exp(-x) / mpmath.gamma(concentration)))


POINTS = [(0.01, -90.0), (0.01, -0.7), (0.3, -3.0), (0.5, 1.2), (1.0, -0.2), (3.0, 0.4), (7.5, 2.9), (40.0, 3.5)]


@pytest.mark.parametrize(("concentration", "log"), [*POINTS, (300.0, 5.65), (300.0, 5.9)])
def test_the_change_with_the_concentration_is_exact(concentration: float, log: float):
    wide = gamma.concentration_slope(*(gc.tensor(v, dtype=gc.float64) for v in (log, concentration)))
    assert wide.item() == pytest.approx(exact_slope(concentration, log), rel=2e-12)
    a, y = (np.float32(v) for v in (concentration, log))
    single = gamma.concentration_slope(gc.tensor(y), gc.tensor(a))
    assert single.item() == pytest.approx(exact_slope(float(a), float(y)), rel=1e-6)
