"""Literals and element types."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import bool_, float32, float64, int8, int32, int64, uint8
from graphc.codegen.cuda.types import integer, literal, memory_type, register_type, unsigned_type
from graphc.ir.kernel.statements import Const


def test_floats_are_written_by_their_bits():
    assert literal(Const(1.0, float32)) == "GC_F32(0x3f800000)"
    assert literal(Const(-0.0, float64)) == "GC_F64(0x8000000000000000)"
    assert literal(Const(float("inf"), float32)) == "GC_F32(0x7f800000)"
    assert literal(Const(float(np.float32(0.1)), float32)) == "GC_F32(0x3dcccccd)"


@pytest.mark.parametrize(
    "value,wide,text", [(7, False, "7"), (-7, True, "(-7ll)"), (-(2**31), False, "(-2147483647 - 1)")]
)
def test_whole_numbers(value: int, wide: bool, text: str):
    assert integer(value, wide) == text


def test_a_bool_is_a_byte_in_memory():
    assert register_type(bool_) == "bool" and memory_type(bool_) == "unsigned char"
    assert literal(Const(True, bool_)) == "true" and literal(Const(3, int64)) == "3ll"
    assert [unsigned_type(t) for t in (int8, uint8, int32, int64)] == [
        *("unsigned char", "unsigned char", "unsigned", "unsigned long long")
    ]
