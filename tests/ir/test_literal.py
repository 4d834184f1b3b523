"""Scalars, names and arrays as text, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphc.base.dtypes import (
    ALL,
    STORED,
    DType,
    bfloat16,
    bool_,
    element,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
)
from graphc.ir.literal import digest, parse_number, print_array, print_name, print_number, print_scalar


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.5, float32, "f32(0.5)"),
        (np.float32(0.1), float32, "f32(0.1)"),
        (0.1, float64, "f64(0.1)"),
        (-0.0, float32, "f32(-0.0)"),
        (1e-45, float64, "f64(1e-45)"),
        (3e38, float32, "f32(3e+38)"),
        (float("inf"), float32, "f32(inf)"),
        (float("-inf"), float64, "f64(-inf)"),
        (float("nan"), float32, "f32(nan)"),
        (-7, int8, "i8(-7)"),
        (2**63 - 1, int64, "i64(9223372036854775807)"),
        (255, uint8, "u8(255)"),
        (0.1, float16, "f16(0.1)"),
        (0.1, bfloat16, "bf16(0.100097656)"),
        (element(-2, bfloat16), bfloat16, "bf16(-2.0)"),
        (True, bool_, "bool(true)"),
        (np.False_, bool_, "bool(false)"),
    ],
)
def test_scalar(value: object, dtype: DType, text: str):
    assert print_scalar(value, dtype) == text


def test_float_that_its_type_cannot_hold_keeps_its_digits():
    assert print_number(0.1 + 0.2, float32) == "0.30000000000000004"


def test_nan_with_a_payload():
    value = np.array([0x7FC00001], np.uint32).view(np.float32)[0]
    assert print_number(value, float32) == "nan:7fc00001"
    assert parse_number("nan:7fc00001", float32).tobytes() == value.tobytes()
    assert print_number(-np.float64("nan"), float64) == "nan:fff8000000000000"


@given(st.sampled_from((*ALL, *STORED)), st.binary(min_size=16, max_size=16))
def test_every_bit_pattern_reads_back(dtype: DType, raw: bytes):
    value = np.frombuffer(raw, np.uint8)[0] % 2 == 1 if dtype.kind == "b" else np.frombuffer(raw, dtype.numpy)[0]
    again = parse_number(print_number(value, dtype), dtype)
    assert (again.dtype, again.tobytes()) == (dtype.numpy, value.tobytes())


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("1", bool_),
        ("true", float32),
        ("1.0", int32),
        ("128", int8),
        ("-1", uint8),
        ("infinity", float32),
        ("nan:7fc00001", float64),
        ("nan:3f800000", float32),
        ("nan:1", int64),
        ("0x10", int32),
        ("", float32),
    ],
)
def test_refused_numbers(text: str, dtype: DType):
    with pytest.raises(ValueError, match=f"^{text} is not of type {dtype}$"):
        parse_number(text, dtype)


def test_numbers_are_rounded_to_their_type():
    assert parse_number("0.1", float32) == np.float32(0.1)
    assert parse_number("1e39", float32) == np.inf


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x", "%x"),
        ("layers.0.weight", "%layers.0.weight"),
        ("a b", '%"a b"'),
        ('say "hi"', '%"say \\"hi\\""'),
        ("", '%""'),
        ("größe", '%"gr\\u00f6\\u00dfe"'),
    ],
)
def test_names(name: str, text: str):
    assert print_name("%", name) == text


def test_small_arrays_print_their_elements():
    assert print_array(np.array([[1.5, -0.0]], np.float32)) == "f32[1,2](1.5, -0.0)"
    assert print_array(np.array(True)) == "bool[](true)"
    assert print_array(np.zeros((0, 3), np.int64)) == "i64[0,3]()"
    assert print_array(np.zeros(16, np.int8)).count("0") == 16


def test_large_arrays_print_their_digest():
    array = np.arange(17, dtype=np.int32)
    assert print_array(array) == f"i32[17]({digest(array)})"
    assert digest(array).startswith("sha256:") and len(digest(array)) == 23


def test_digest_depends_on_type_shape_and_bytes_only():
    array = np.zeros(32, np.float32)
    different = [array, array.reshape(2, 16), array.view(np.int32), array.astype(np.float64), -array]
    assert len({digest(a) for a in different}) == len(different)
    wide = np.arange(64, dtype=np.float32).reshape(8, 8)
    assert digest(wide.T) == digest(np.ascontiguousarray(wide.T)) != digest(wide)
