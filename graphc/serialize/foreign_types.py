"""Element types of foreign files: those that graphc lacks become the smallest of its own that holds every value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np


class ForeignType(NamedTuple):
    """How elements lie in a file, and how they become an array."""

    name: str
    stored: str
    """The numpy type that has their size; little-endian."""
    decode: Callable[[np.ndarray], np.ndarray]
    becomes: str = ""
    """The type of graphc that takes their place; empty where they stay what they are."""


def _same(array: np.ndarray) -> np.ndarray:
    return array


def _bool(array: np.ndarray) -> np.ndarray:
    # NOTE: a byte other than 0 and 1 is no valid boolean of numpy's.
    return array != 0


def _bfloat16(array: np.ndarray) -> np.ndarray:
    return (array.astype(np.uint32) << 16).view(np.float32)


C128 = ForeignType("c128", "<c16", _same)
C64 = ForeignType("c64", "<c8", _same)
F64 = ForeignType("f64", "<f8", _same)
F32 = ForeignType("f32", "<f4", _same)
F16 = ForeignType("f16", "<f2", lambda array: array.astype(np.float32), "f32")
BF16 = ForeignType("bf16", "<u2", _bfloat16, "f32")
I64 = ForeignType("i64", "<i8", _same)
I32 = ForeignType("i32", "<i4", _same)
I16 = ForeignType("i16", "<i2", lambda array: array.astype(np.int32), "i32")
I8 = ForeignType("i8", "<i1", _same)
U8 = ForeignType("u8", "<u1", _same)
BOOL = ForeignType("bool", "<u1", _bool)


def decode(data: np.ndarray, kind: ForeignType, big_endian: bool = False) -> np.ndarray:
    """The elements in an array of bytes, one-dimensional; shares memory where nothing has to be converted."""
    stored = np.dtype(kind.stored)
    array = data.view(stored) if data.size else np.empty(0, stored)
    return kind.decode(array.byteswap() if big_endian else array)


def note_of(kinds: Iterable[ForeignType]) -> str:
    """What is said, once per file, of element types that became others; empty where none did."""
    found = sorted(f"{kind.name} became {kind.becomes}" for kind in set(kinds) if kind.becomes)
    return f"{', '.join(found)}: the values are the same" if found else ""
