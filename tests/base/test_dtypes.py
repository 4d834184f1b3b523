"""Element types: names, sizes, identity, and promotion as PyTorch promotes."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest

from graphc.base import dtypes
from graphc.base.dtypes import (
    DType,
    bfloat16,
    bits_of,
    dtype_of,
    float16,
    halves,
    layout_of,
    narrow,
    pair,
    promote,
    python_scalar_type,
    scalar_type,
    widen,
)
from graphc.errors import DTypeError

HALVES = (float16, bfloat16)
EVERY = dtypes.ALL
WIDE_UNSIGNED = (dtypes.uint16, dtypes.uint32, dtypes.uint64)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_every_name_leads_to_the_one_instance(dtype: DType):
    for name in (dtype, dtype.name, dtype.long_name, dtype.numpy):
        assert dtype_of(name) is dtype
    for other in (copy.copy(dtype), copy.deepcopy(dtype), pickle.loads(pickle.dumps(dtype))):
        assert other is dtype
    assert repr(dtype) == f"graphc.{dtype.long_name}"


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_properties_are_those_of_numpy(dtype: DType):
    assert dtype.itemsize == dtype.numpy.itemsize
    assert dtype.kind == ("h" if dtype in HALVES else dtype.numpy.kind)
    assert dtype.is_floating_point == (np.issubdtype(dtype.numpy, np.floating) or dtype is bfloat16)
    assert dtype.is_integer == np.issubdtype(dtype.numpy, np.integer)


@pytest.mark.parametrize("value", ["complex32", np.longdouble, "no type", object()])
def test_foreign_types_are_refused_with_the_known_names(value: object):
    with pytest.raises(DTypeError, match="is not supported") as caught:
        dtype_of(value)
    names = "f64, f32, f16, bf16, c128, c64, i64, i32, i16, i8, u64, u32, u16, u8, bool"
    assert caught.value.remedy == f"use one of {names}"


def test_names_lead_to_types():
    assert dtypes.BY_NAME["f32"] is dtypes.float32


def test_promotion_is_symmetric_and_keeps_equal_types():
    for a, b in itertools.product(EVERY, repeat=2):
        assert promote(a, b) is promote(b, a)
    for a in EVERY:
        assert promote(a, a) is a


@pytest.mark.parametrize(("a", "b"), [*itertools.combinations_with_replacement(EVERY, 2)], ids=str)
def test_promotion_as_torch(torch, a: DType, b: DType):
    try:
        expected = torch.promote_types(getattr(torch, a.long_name), getattr(torch, b.long_name))
    except RuntimeError:
        assert {a, b} & set(WIDE_UNSIGNED)
        return
    assert f"torch.{promote(a, b).long_name}" == str(expected)


@pytest.mark.parametrize("dtype", EVERY, ids=str)
@pytest.mark.parametrize("scalar", [True, 2, 2.5, 2.5j])
def test_scalars_beside_tensors_as_torch(torch, dtype: DType, scalar: bool | int | float):
    expected = torch.result_type(torch.ones(2, dtype=getattr(torch, dtype.long_name)), scalar)
    if expected is torch.complex32:  # of which graphc has none
        expected = torch.complex64
    assert f"torch.{promote(dtype, scalar_type(scalar, dtype)).long_name}" == str(expected)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, dtypes.bool_),
        (np.bool_(False), dtypes.bool_),
        (3, dtypes.int64),
        (np.int8(3), dtypes.int64),
        (0.5, dtypes.float32),
    ],
)
def test_lone_scalars(value: bool | int | float, dtype: DType):
    assert python_scalar_type(value) is dtype


@pytest.mark.parametrize("dtype", dtypes.STORED, ids=str)
def test_stored_types_are_no_types_of_tensors(dtype: DType):
    assert layout_of(dtype.numpy) is dtype and dtype.itemsize == dtype.numpy.itemsize
    assert not dtype.is_floating_point and not dtype.is_differentiable and not dtype.is_integer
    assert pickle.loads(pickle.dumps(dtype)) is dtype and copy.deepcopy(dtype) is dtype
    for name in (dtype.name, dtype.long_name, dtype.numpy):
        with pytest.raises(DTypeError, match="is not supported"):
            dtype_of(name)
    with pytest.raises(DTypeError, match="is not supported"):
        layout_of(np.dtype(np.clongdouble))


def test_what_types_hold_all_numbers_of_others():
    named = dtypes.BY_NAME
    pairs = [
        p.split() for p in ("f32 bf16", "f32 f16", "f32 i16", "bf16 i8", "f16 u8", "u64 u32", "i16 u8", "f16 bool")
    ]
    assert all(dtypes.holds_all(named[a], named[b]) for a, b in pairs)
    pairs = [
        p.split() for p in ("bf16 f16", "f16 bf16", "bf16 i16", "u16 i8", "i16 u16", "f32 f32", "bool u8", "f64 i64")
    ]
    assert not any(dtypes.holds_all(named[a], named[b]) for a, b in pairs)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_every_narrow_number_survives(dtype: DType):
    bits = np.arange(1 << 16).astype(np.uint16)
    wide = widen(bits.view(dtype.numpy))
    again = bits_of(narrow(wide, dtype))
    nan = np.isnan(wide)
    assert wide.dtype == np.float32 and 0 < nan.sum() < 3000
    np.testing.assert_array_equal(again[~nan], bits[~nan])
    assert np.isnan(widen(again[nan].view(dtype.numpy))).all()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_narrowing_rounds_to_the_nearest_and_ties_to_even(dtype: DType):
    finite = np.sort(widen(np.arange(1 << 16).astype(np.uint16).view(dtype.numpy)))
    finite = np.unique(finite[np.isfinite(finite)])
    low, high = finite[:-1].astype(np.float64), finite[1:].astype(np.float64)
    for part, expected in ((0.25, low), (0.75, high)):
        got = widen(narrow((low + (high - low) * part).astype(np.float32), dtype))
        np.testing.assert_array_equal(got, expected)
    ties = ((low + high) / 2).astype(np.float32)
    assert not (bits_of(narrow(ties, dtype)) & 1).any()


def test_numbers_beyond_the_range():
    wide = np.array([70000.0, -1e6, 3.4e38, np.inf, -np.inf, np.nan, -0.0], np.float32)
    np.testing.assert_array_equal(widen(narrow(wide, float16)), [np.inf, -np.inf, np.inf, np.inf, -np.inf, np.nan, 0.0])
    np.testing.assert_array_equal(
        widen(narrow(wide, bfloat16)), [70144.0, -999424.0, np.inf, np.inf, -np.inf, np.nan, 0.0]
    )
    assert np.signbit(widen(narrow(wide, bfloat16))[-1]) and narrow(np.float32(1.0), bfloat16).shape == ()


def test_pairs_hold_two_rounded_numbers():
    low, high = np.random.default_rng(0).standard_normal((2, 5, 7)).astype(np.float32)
    low[0, :4] = [np.nan, np.inf, -0.0, 3.4e38]
    made = pair(low, high)
    assert made.dtype == dtypes.bfloat16x2.numpy and made.shape == (5, 7)
    for result, given in zip(halves(made), (low, high), strict=True):
        np.testing.assert_array_equal(result, widen(narrow(given, bfloat16)))
    assert halves(pair(np.float32(1.5), np.float32(-2.0))) == (1.5, -2.0)
