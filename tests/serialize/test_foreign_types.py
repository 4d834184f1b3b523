"""Element types of foreign files: every value of the small ones comes out exactly."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.serialize import foreign_types as types


@pytest.mark.parametrize("kind", [types.F64, types.F32, types.I64, types.I32, types.I8, types.U8])
def test_own_types_share_memory(kind):
    stored = np.arange(5).astype(kind.stored)
    found = types.decode(stored.view(np.uint8), kind)
    np.testing.assert_array_equal(found, stored)
    assert np.shares_memory(found, stored)


def test_half_precision_is_exact():
    bits = np.arange(1 << 16, dtype=np.uint16)
    found = types.decode(bits.view(np.uint8), types.F16)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, bits.view(np.float16).astype(np.float64))
    wide = types.decode(bits.view(np.uint8), types.BF16)
    np.testing.assert_array_equal(wide.view(np.uint32) >> 16, bits)
    assert types.decode(np.array([0x80, 0x3F, 0x49, 0xC0], np.uint8), types.BF16).tolist() == [1.0, -3.140625]


def test_bools_are_zero_or_one():
    found = types.decode(np.array([0, 1, 2, 255], np.uint8), types.BOOL)
    assert found.dtype == np.bool_
    assert found.view(np.uint8).tolist() == [0, 1, 1, 1]


def test_short_integers():
    assert types.decode(np.array([0xFE, 0xFF], np.uint8), types.I16).tolist() == [-2]
    assert types.decode(np.array([], np.uint8), types.I16).dtype == np.int32


def test_big_endian():
    stored = np.array([1.5, -2.0], ">f4")
    assert types.decode(stored.view(np.uint8), types.F32, big_endian=True).tolist() == [1.5, -2.0]
    assert types.decode(np.array([0x3F, 0x80], np.uint8), types.BF16, big_endian=True).tolist() == [1.0]
