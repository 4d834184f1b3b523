"""Element types of foreign files: every value of the small ones comes out exactly."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import bfloat16, widen
from graphc.checkpoints import foreign_types as types


@pytest.mark.parametrize(
    "kind", [getattr(types, n) for n in ["F64", "F32", "F16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8"]]
)
def test_own_types_share_memory(kind):
    stored = np.arange(5).astype(kind.stored)
    found = types.decode(stored.view(np.uint8), kind)
    np.testing.assert_array_equal(found, stored)
    assert np.shares_memory(found, stored)


def test_bf16_stays_what_it_is():
    found = types.decode(np.array([0x80, 0x3F, 0x49, 0xC0], np.uint8), types.BF16)
    assert found.dtype == bfloat16.numpy and widen(found).tolist() == [1.0, -3.140625]


def test_bools_are_zero_or_one():
    found = types.decode(np.array([0, 1, 2, 255], np.uint8), types.BOOL)
    assert found.dtype == np.bool_
    assert found.view(np.uint8).tolist() == [0, 1, 1, 1]


def test_big_endian():
    stored = np.array([1.5, -2.0], ">f4")
    assert types.decode(stored.view(np.uint8), types.F32, big_endian=True).tolist() == [1.5, -2.0]
    assert widen(types.decode(np.array([0x3F, 0x80], np.uint8), types.BF16, big_endian=True)).tolist() == [1.0]
