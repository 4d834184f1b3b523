"""Element types of foreign file formats: their layout there, and their conversion to arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from graphc.base.dtypes import bfloat16


class ForeignType(NamedTuple):
    """Element type of a file format, with the conversion of its elements to an array."""

    name: str
    stored: str
    """Little-endian numpy type of the same size."""
    decode: Callable[[np.ndarray], np.ndarray]


def _same(array: np.ndarray) -> np.ndarray:
    return array


def _bool(array: np.ndarray) -> np.ndarray:
    # NOTE: bytes other than 0 and 1 are not valid booleans in numpy.
    return array != 0


def _bfloat16(array: np.ndarray) -> np.ndarray:
    return array.view(bfloat16.numpy)


C128 = ForeignType("c128", "<c16", _same)
C64 = ForeignType("c64", "<c8", _same)
F64 = ForeignType("f64", "<f8", _same)
F32 = ForeignType("f32", "<f4", _same)
F16 = ForeignType("f16", "<f2", _same)
BF16 = ForeignType("bf16", "<u2", _bfloat16)
I64 = ForeignType("i64", "<i8", _same)
I32 = ForeignType("i32", "<i4", _same)
I16 = ForeignType("i16", "<i2", _same)
I8 = ForeignType("i8", "<i1", _same)
U64 = ForeignType("u64", "<u8", _same)
U32 = ForeignType("u32", "<u4", _same)
U16 = ForeignType("u16", "<u2", _same)
U8 = ForeignType("u8", "<u1", _same)
BOOL = ForeignType("bool", "<u1", _bool)


def decode(data: np.ndarray, kind: ForeignType, big_endian: bool = False) -> np.ndarray:
    """Convert an array of bytes to its elements, one-dimensional; shares memory if no conversion is needed."""
    stored = np.dtype(kind.stored)
    array = data.view(stored) if data.size else np.empty(0, stored)
    return kind.decode(array.byteswap() if big_endian else array)
