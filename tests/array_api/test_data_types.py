"""Element types as the standard asks for them."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.array_api as xp
from graphc.base.errors import DTypeError


def test_conversion_copies_unless_it_need_not():
    x = xp.ones(2)
    assert xp.astype(x, xp.float32, copy=False) is x
    assert xp.astype(x, xp.float32) is not x
    assert xp.astype(x, xp.int8).dtype is gc.int8 and xp.astype(x, xp.int8, device="cpu").tolist() == [1, 1]


def test_what_promotion_may_give_can_be_cast():
    assert xp.can_cast(xp.int8, xp.int32) and xp.can_cast(xp.float32, xp.float64)
    assert xp.can_cast(xp.ones(2), xp.float64) and not xp.can_cast(xp.float64, xp.float32)
    assert not xp.can_cast(xp.int32, xp.int8)


@pytest.mark.parametrize("dtype", [xp.float32, xp.float64])
def test_limits_of_floats_are_those_of_numpy(dtype):
    found, wanted = xp.finfo(dtype), np.finfo(dtype.numpy)
    assert (found.bits, found.dtype) == (wanted.bits, dtype)
    for name in ("eps", "max", "min", "smallest_normal"):
        assert type(getattr(found, name)) is float and getattr(found, name) == getattr(wanted, name)
    assert xp.finfo(xp.ones(1, dtype=dtype)) == found


@pytest.mark.parametrize("dtype", [xp.int8, xp.int32, xp.int64, xp.uint8])
def test_limits_of_integers_are_those_of_numpy(dtype):
    found, wanted = xp.iinfo(dtype), np.iinfo(dtype.numpy)
    assert (found.bits, found.max, found.min, found.dtype) == (wanted.bits, wanted.max, wanted.min, dtype)


def test_limits_of_other_kinds_are_refused():
    with pytest.raises(DTypeError, match="floating-point"):
        xp.finfo(xp.int8)
    with pytest.raises(DTypeError, match="integer"):
        xp.iinfo(xp.bool)


def test_types_have_kinds():
    assert xp.isdtype(xp.int8, "signed integer") and xp.isdtype(xp.uint8, ("bool", "integral"))
    assert xp.isdtype(xp.float32, xp.float32) and not xp.isdtype(xp.bool, "numeric")
    assert not any(xp.isdtype(d, "complex floating") for d in (xp.float32, xp.float64, xp.int8))


def test_the_type_of_a_result():
    assert xp.result_type(xp.int8, xp.ones(1, dtype=xp.int32), 3) is gc.int32
    assert xp.result_type(1.5, xp.float64, xp.ones((), dtype=xp.float32)) is gc.float64
