"""Scalar operations: their types, and the corners of their numpy meaning."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from graphc.base.dtypes import ALL, DType, bool_, element, float32, float64, int8, int32, int64, uint8
from graphc.errors import VerifyError
from graphc.ir.kernel.scalar import SCALAR_OPS, bitcast, cast, result_type


def run(name: str, *values: object, dtype: DType | None = None) -> object:
    reference = SCALAR_OPS[name].reference
    with np.errstate(all="ignore"):
        return reference(*values, dtype)[()] if dtype is not None else np.asarray(reference(*values))[()]


@pytest.mark.parametrize(
    ("name", "types", "stated", "result"),
    [
        ("add", (float32, float32), None, float32),
        ("lt", (uint8, uint8), None, bool_),
        ("select", (bool_, int8, int8), None, int8),
        ("cast", (float64,), bool_, bool_),
        ("bitcast", (float32,), int32, int32),
        ("ldexp", (float32, int32), None, float32),
        ("ldexp", (float64, int64), None, float64),
        ("ldexp", (float32, float32), None, float32),
        ("fma", (float64,) * 3, None, float64),
        ("not", (bool_,), None, bool_),
        ("mulhi_unsigned", (int32, int32), None, int32),
    ],
)
def test_result_types(name: str, types: tuple[DType, ...], stated: DType | None, result: DType):
    assert result_type(name, types, stated) is result


@pytest.mark.parametrize(
    ("name", "types", "stated", "message"),
    [
        ("plus", (), None, "unknown scalar operation plus"),
        ("add", (float32,), None, "add takes 2 operands, got 1"),
        ("add", (float32, float64), None, r"add cannot take \(f32, f64\)"),
        ("add", (bool_, bool_), None, r"add cannot take \(bool, bool\)"),
        ("and", (float32, float32), None, r"and cannot take \(f32, f32\)"),
        ("sqrt", (int32,), None, r"sqrt cannot take \(i32\)"),
        ("select", (int8, int8, int8), None, r"select cannot take \(i8, i8, i8\)"),
        ("ldexp", (float32, int64), None, r"ldexp cannot take \(f32, i64\)"),
        ("cast", (float32,), None, "cast of f32 to None is not possible"),
        ("bitcast", (float32,), int64, "bitcast of f32 to i64 is not possible"),
        ("bitcast", (bool_,), uint8, "bitcast of bool to u8 is not possible"),
        ("mulhi_unsigned", (int64, int64), None, r"mulhi_unsigned cannot take \(i64, i64\)"),
    ],
)
def test_wrong_types(name: str, types: tuple[DType, ...], stated: DType | None, message: str):
    with pytest.raises(VerifyError, match=message):
        result_type(name, types, stated)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (np.float32(2.9), int32, 2),
        (np.float32(-2.9), int32, -2),
        (np.float32(np.nan), int64, 0),
        (np.float32(np.inf), int32, 2**31 - 1),
        (np.float32(-np.inf), int64, -(2**63)),
        (np.float64(2.0**63), int64, 2**63 - 1),
        (np.float64(-(2.0**63)), int64, -(2**63)),
        (np.float64(1e300), int8, 127),
        (np.float32(-0.9), uint8, 0),
        (np.float32(-5), uint8, 0),
        (np.float32(255.5), uint8, 255),
        (np.float32(256), uint8, 255),
        (np.int32(300), int8, 44),
        (np.int8(-1), uint8, 255),
        (np.uint8(200), int8, -56),
        (np.float32(0.25), bool_, True),
        (np.float32(-0.0), bool_, False),
        (np.bool_(True), float64, 1.0),
    ],
)
def test_cast(value: np.generic, dtype: DType, expected: object):
    result = cast(value, dtype)
    assert result == expected and result.dtype == dtype.numpy


def test_bitcast():
    assert bitcast(np.float32(1.0), int32) == 0x3F800000
    assert bitcast(np.int64(-1), float64).tobytes() == b"\xff" * 8


@pytest.mark.parametrize(
    ("a", "b", "quotient", "rest"),
    [(7, 2, 3, 1), (-7, 2, -3, -1), (7, -2, -3, 1), (-7, -2, 3, -1), (5, 0, 0, 0), (-128, -1, -128, 0)],
)
def test_integer_division_truncates_and_never_traps(a: int, b: int, quotient: int, rest: int):
    assert run("div", np.int8(a), np.int8(b)) == quotient
    assert run("rem", np.int8(a), np.int8(b)) == rest


def test_float_division():
    assert run("div", np.float32(1), np.float32(0)) == np.inf
    assert run("rem", np.float64(-7.5), np.float64(2)) == -1.5


def test_shifts():
    assert run("shr", np.int8(-128), np.int8(3)) == -16
    assert run("shr_unsigned", np.int8(-128), np.int8(3)) == 16
    assert run("shl", np.int8(65), np.int8(1)) == -126
    assert run("mulhi_unsigned", np.int32(-1), np.int32(-1)) == -2


def test_fma_rounds_once():
    """2^-24 is lost when the product is rounded first."""
    a = np.float32(1 + 2**-12)
    assert run("fma", a, a, np.float32(-1 - 2**-11)) == np.float32(2**-24)
    assert a * a - np.float32(1 + 2**-11) == 0


def exact_fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Round ``a * b + c`` once, by fractions."""
    sums = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c, strict=True)]
    return np.array([_nearest(exact) for exact in sums], np.float32)


def _nearest(exact: Fraction) -> float:
    """Return the f32 next to a fraction; of two equally near ones the even one."""
    near = np.array(float(exact)).astype(np.float32)
    options = np.array([near, np.nextafter(near, -np.inf), np.nextafter(near, np.inf)], np.float32)
    even = (options.view(np.uint32) & 1).tolist()
    distances = [abs(Fraction(x) - exact) for x in options.tolist()]
    return options.tolist()[min(range(3), key=lambda i: (distances[i], even[i]))]


def half_way(count: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return operands whose products lie near the middle of two f32, and addends too small for an f64 to hold."""
    random = np.random.default_rng(5)
    a = (1 + random.integers(0, 1 << 12, count) * 2.0**-12).astype(np.float32)
    b = (1 + random.integers(0, 1 << 12, count) * 2.0**-12).astype(np.float32)
    tiny = random.choice([-1, 0, 1], count) * 2.0 ** random.integers(-70, -30, count)
    return a, b, tiny.astype(np.float32)


def test_fma_is_exact_half_way_between_two_numbers():
    a, b, c = half_way()
    np.testing.assert_array_equal(run("fma", a, b, c), exact_fma(a, b, c))
    assert ((np.float64(a) * b + c).astype(np.float32) != exact_fma(a, b, c)).any()


def test_nan_goes_through_min_and_max():
    nan = np.float32(np.nan)
    assert np.isnan(run("max", nan, np.float32(1))) and np.isnan(run("min", np.float32(1), nan))


def test_select_and_rounding():
    assert run("select", np.bool_(False), np.float32(1), np.float32(2)) == 2
    assert [run("roundeven", np.float64(v)) for v in (0.5, 1.5, 2.5, -0.5)] == [0, 2, 2, 0]
    assert run("ldexp", np.float32(1.5), np.int32(-3)) == 0.1875


def test_every_operation_keeps_its_type():
    for op in SCALAR_OPS.values():
        for dtype in ALL:
            types = (bool_, dtype, dtype) if op.rule == "select" else (dtype,) * op.arity
            try:
                result = result_type(op.name, types, dtype)
            except VerifyError:
                continue
            values = [element(1, t) for t in types]
            found = run(op.name, *values, dtype=dtype if op.rule == "cast" else None)
            assert np.asarray(found).dtype == result.numpy, (op.name, dtype)


def test_erf_of_f32_is_rounded_once():
    random = np.random.default_rng(0)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 5.99, 7.0, 3e38]
    x = np.float32([*random.normal(scale=2, size=20_000), *random.normal(scale=1e-3, size=2_000), *special])
    expected = np.float32([math.erf(v) for v in x.tolist()])
    result = SCALAR_OPS["erf"].reference(x)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result[-9:]), np.signbit(expected[-9:]))


@pytest.mark.parametrize("shape", [(), (0, 3), (70, 300)], ids=["number", "empty", "blocks"])
def test_erf_of_f32_takes_any_shape_and_layout(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32).T
    result = SCALAR_OPS["erf"].reference(x)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, np.vectorize(math.erf, otypes=[np.float32])(x))
