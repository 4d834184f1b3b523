"""exp, expm1, logarithms, tanh and erf against numpy in f64, mpmath, and numpy's tables."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from graphc.base.dtypes import float32, float64
from graphc.ir.kernel.scalar import SCALAR_OPS
from tests.codegen.lanes import (
    evaluate,
    every,
    operation,
    powers_of_two,
    random_bits_f64,
    ulps,
    ulps_exact,
    worst,
)
from tests.codegen.tables import bit_distance, table

# Largest error in units in the last place that each function may have: (f32, f64).
LIMITS = {
    "exp": (0.95, 0.95),
    "expm1": (1.6, 1.9),
    "log": (0.95, 1.4),
    "log1p": (1.6, 1.95),
    "tanh": (2.05, 2.3),
    "erf": (1.85, 1.8),
    "exp2": (0.95, 0.95),
    "log2": (1.0, 0.95),
    "log10": (1.0, 0.95),
}
EXACT = {name: SCALAR_OPS[name].reference for name in LIMITS}
MPMATH = {"exp": mpmath.exp, "expm1": mpmath.expm1, "tanh": mpmath.tanh, "erf": mpmath.erf}
MPMATH["exp2"] = lambda v: mpmath.mpf(2) ** v
BASES = {"log": None, "log2": 2, "log10": 10}
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-38, -1e-38, 3.4e38, -3.4e38, 2.0**-126]
EDGES_F32 = {
    "exp": [88.72283, 88.72284, 88.73, 89.5, -87.33655, -87.4, -103.0, -103.97, -103.98, -104.5],
    "expm1": [88.72283, 88.72284, 88.73, 88.4, -17.3, -17.4, -20.5, 0.34657359, -0.34657359],
    "log": [np.nextafter(np.float32(1), np.float32(k)) for k in (0, 2)],
    "log1p": [np.nextafter(np.float32(-1), np.float32(k)) for k in (0, -2)] + [2.0**127, 2.3e38],
    "tanh": [9.01, 9.02, 9.1, -100.0],
    "erf": [3.91, 3.92, 3.93, -100.0],
    "exp2": [127.999, 128.0, 129.5, -126.1, -148.9, -149.0, -149.1, -151.0, -0.5],
    "log2": [np.nextafter(np.float32(1), np.float32(k)) for k in (0, 2)],
    "log10": [np.nextafter(np.float32(1), np.float32(k)) for k in (0, 2)],
}
EDGES_F64 = {
    "exp": [709.78, 709.79, 711.0, -708.4, -708.5, -745.13, -745.14, -747.0, 5e-324],
    "expm1": [709.78, 709.79, 709.1, -37.0, -38.0, -41.0, 0.34657359027997264, 5e-324, -1e-310],
    "log": [np.nextafter(1.0, 0), np.nextafter(1.0, 2), 5e-324, 1e-310, 2.0**-1022, 1.7e308],
    "log1p": [np.nextafter(-1.0, 0), np.nextafter(-1.0, -2), 2.0**1023, 1.7e308, 5e-324, -1e-310],
    "tanh": [19.0, 19.1, 19.2, -100.0, 5e-324],
    "erf": [5.9, 5.95, 6.0, -100.0, 5e-324],
    "exp2": [1023.999, 1024.0, 1025.5, -1022.1, -1074.0, -1074.9, -1075.1, -1080.0, 5e-324],
    "log2": [np.nextafter(1.0, 0), np.nextafter(1.0, 2), 5e-324, 1e-310, 2.0**-1022, 1.7e308],
    "log10": [np.nextafter(1.0, 0), np.nextafter(1.0, 2), 5e-324, 1e-310, 2.0**-1022, 1.7e308],
}


@pytest.mark.parametrize("name", LIMITS)
def test_f32_is_near_the_exact_value_everywhere(name: str):
    usual = np.random.default_rng(7).uniform(-12, 12, 200_000).astype(np.float32)
    x = np.concatenate([every(4099), usual, np.array(SPECIAL + EDGES_F32[name], np.float32)])
    with np.errstate(all="ignore"):
        exact = EXACT[name](x.astype(np.float64))
    error, where = worst(name, ulps(evaluate(operation(name), [float32], [x]), exact), x)
    assert error <= LIMITS[name][0], where


def _log(x: mpmath.mpf, base: int | None) -> mpmath.mpf:
    return mpmath.log(x) if base is None else mpmath.log(x, base)


def _mpmath(name: str, x: float) -> mpmath.mpf:
    """The function of a finite number in its domain; limits at infinity, NaN elsewhere."""
    if np.isnan(x):
        return mpmath.mpf("nan")
    if name in (*BASES, "log1p"):
        argument = mpmath.mpf(x) + (name == "log1p")
        if argument > 0:
            return mpmath.log1p(mpmath.mpf(x)) if name == "log1p" else _log(argument, BASES[name])
        return mpmath.mpf("-inf" if argument == 0 else "nan")
    if np.isinf(x):
        low = {"exp": 0, "exp2": 0, "expm1": -1, "tanh": -1, "erf": -1}[name]
        return mpmath.mpf(low) if x < 0 else mpmath.mpf("inf" if name in ("exp", "expm1", "exp2") else 1)
    if name == "erf" and abs(x) > 10:
        return mpmath.mpf(np.sign(x))
    return MPMATH[name](mpmath.mpf(x))


@pytest.mark.parametrize("name", LIMITS)
def test_f64_is_near_the_exact_value(name: str):
    rng = np.random.default_rng(5)
    x = np.concatenate(
        [
            np.array(SPECIAL + EDGES_F64[name]),
            rng.uniform(-1, 1, 1000),
            rng.uniform(-7, 7, 1000),
            rng.uniform(-745, 710, 300),
            powers_of_two(-60, 4, 600),
            1 + powers_of_two(-40, -1, 300),
            random_bits_f64(300),
        ]
    )
    got = evaluate(operation(name), [float64], [x])
    with mpmath.workdps(60):
        error, where = worst(name, ulps_exact(got, [_mpmath(name, v) for v in x.tolist()]), x)
    assert error <= LIMITS[name][1], where


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_zeros_keep_their_sign_where_the_function_is_odd(name: str, dtype):
    zeros = np.array([0.0, -0.0], dtype.numpy)
    got = evaluate(operation(name), [dtype], [zeros])
    if name in ("exp", "exp2"):
        assert got.tolist() == [1.0, 1.0]
    elif name in BASES:
        assert got.tolist() == [-np.inf, -np.inf]
    else:
        assert (got == 0).all() and np.signbit(got).tolist() == [False, True]


@pytest.mark.parametrize("name", [n for n in LIMITS if n != "erf"])
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_the_tables_of_numpy_agree(name: str, dtype):
    x, want = table(name, dtype.long_name)
    assert x.size > 100
    limit = np.ceil(LIMITS[name][dtype is float64])
    error, where = worst(name, bit_distance(evaluate(operation(name), [dtype], [x]), want), x)
    assert error <= limit, where
