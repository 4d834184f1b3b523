"""Formats of floats: the numbers of their bits, and the shift that keeps what it loses."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from graphc.codegen.link.shared import link_shared
from graphc.codegen.link.soft_float.blocks import DOUBLE, SINGLE, SoftFormat, shifted
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import target_named
from tests.codegen.link.objects import own_target


@pytest.mark.parametrize(("f", "dtype"), [(SINGLE, np.float32), (DOUBLE, np.float64)])
def test_numbers_of_bits_are_those_of_numpy(f: SoftFormat, dtype: type):
    info, word = np.finfo(dtype), np.dtype(f"u{f.bits // 8}")
    assert f.names["infinity"] == int(np.array(np.inf, dtype).view(word))
    assert f.names["nan"] == int(np.array(np.nan, dtype).view(word))
    assert (f.mantissa, f.bias) == (info.nmant, info.maxexp - 1)
    assert f.names["implicit"] == int(info.tiny.view(word))


def test_a_shift_sets_the_last_bit_where_any_was_lost(tmp_path: Path):
    target = target_named(own_target())
    body = shifted("r", "%value", "%by", "i32", "31")
    text = f"define i32 @f(i32 %value, i32 %by) {{\n{body}  ret i32 %r\n}}\n"
    code = build_object(f'target triple = "{target.triple}"\n{text}', target)
    (tmp_path / "f.so").write_bytes(link_shared([code], ["f"], allowed=()))
    f = ctypes.CDLL(str(tmp_path / "f.so")).f
    for value in (0, 1, 2, 3, 0x40000000, 0x7FFFFFFF):
        for by in (0, 1, 2, 29, 30, 31, 32, 1000):
            assert f(value, by) == (value >> by | (value & (1 << by) - 1 != 0)), (value, by)
