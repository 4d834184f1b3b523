"""Arithmetic in integers: the bits of numpy and of libm, on edge values, at random, and where results are subnormal."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.codegen.link.soft_float.running import COUNT, FORMATS, assert_equal, floats, run

LIBM_COUNT = 60_000
"""Numbers with which libm is called one by one."""
ORDERS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    **{"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater},
    **{"ge": np.greater_equal, "unord": lambda x, y: np.isnan(x) | np.isnan(y)},
}
MEANS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    **{"eq": lambda r: r == 0, "ne": lambda r: r != 0, "lt": lambda r: r < 0, "le": lambda r: r <= 0},
    **{"gt": lambda r: r > 0, "ge": lambda r: r >= 0, "unord": lambda r: r != 0},
}
"""What callers conclude from the result of a comparison."""


@pytest.mark.parametrize("letter", FORMATS)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_arithmetic_has_the_bits_of_numpy(name: str, letter: str, tmp_path: Path):
    dtype, kind, _ = FORMATS[letter]
    x, y = floats(dtype, 2)
    if name in ("add", "sub"):  # differences of which few bits stay
        some = slice(-COUNT // 4, None)
        with np.errstate(all="ignore"):
            x[some] = np.nextafter(-y[some] if name == "add" else y[some], dtype(0)) * dtype(2)
    with np.errstate(all="ignore"):
        expected = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name](x, y)
    assert_equal(run(f"__{name}{letter}f3", [x, y], [kind] * 2, (dtype, kind), tmp_path), expected, x, y)


@pytest.mark.parametrize("letter", FORMATS)
def test_roots_have_the_bits_of_numpy(letter: str, tmp_path: Path):
    dtype, kind, suffix = FORMATS[letter]
    x = np.abs(floats(dtype, 1)[0])
    x[::7] = -x[::7]
    with np.errstate(all="ignore"):
        expected = np.sqrt(x)
    assert_equal(run(f"sqrt{suffix}", [x], [kind], (dtype, kind), tmp_path), expected, x)


@pytest.mark.parametrize("letter", FORMATS)
def test_multiply_add_has_the_bits_of_libm(letter: str, tmp_path: Path):
    dtype, kind, suffix = FORMATS[letter]
    columns = [np.concatenate([c[-LIBM_COUNT // 2 :], c[: LIBM_COUNT // 2]]) for c in floats(dtype, 3)]
    random, some = np.random.default_rng(6), slice(0, LIBM_COUNT // 3)
    with np.errstate(all="ignore"):  # terms that cancel nearly all of the product
        steps = dtype(1) + random.integers(-3, 4, LIBM_COUNT // 3).astype(dtype) * np.finfo(dtype).epsneg
        columns[2][some] = (-(columns[0] * columns[1])[some] * steps).astype(dtype)
    function = getattr(ctypes.CDLL("libm.so.6"), f"fma{suffix}")
    number = ctypes.c_float if suffix else ctypes.c_double
    function.restype, function.argtypes = number, [number] * 3
    expected = np.array([function(*v) for v in zip(*(c.tolist() for c in columns), strict=True)], dtype)
    assert_equal(run(f"fma{suffix}", columns, [kind] * 3, (dtype, kind), tmp_path), expected, *columns)


@pytest.mark.parametrize("letter", FORMATS)
@pytest.mark.parametrize("name", ORDERS)
def test_comparisons_are_those_of_numpy(name: str, letter: str, tmp_path: Path):
    dtype, kind, _ = FORMATS[letter]
    x, y = floats(dtype, 2)
    x[::5] = y[::5]
    results = run(f"__{name}{letter}f2", [x, y], [kind] * 2, (np.int32, "i32"), tmp_path)
    np.testing.assert_array_equal(MEANS[name](results), ORDERS[name](x, y))
