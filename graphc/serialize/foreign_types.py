"""Element types of foreign files: those that graphc lacks become the smallest of its own that holds every value."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class ForeignType(NamedTuple):
    """How elements lie in a file, and how they become an array."""

    stored: str
    """The numpy type that has their size; little-endian."""
    decode: Callable[[np.ndarray], np.ndarray]


def _same(array: np.ndarray) -> np.ndarray:
    return array


def _bool(array: np.ndarray) -> np.ndarray:
    # NOTE: a byte other than 0 and 1 is no valid boolean of numpy's.
    return array != 0


def _bfloat16(array: np.ndarray) -> np.ndarray:
    return (array.astype(np.uint32) << 16).view(np.float32)


F64 = ForeignType("<f8", _same)
F32 = ForeignType("<f4", _same)
F16 = ForeignType("<f2", lambda array: array.astype(np.float32))
BF16 = ForeignType("<u2", _bfloat16)
I64 = ForeignType("<i8", _same)
I32 = ForeignType("<i4", _same)
I16 = ForeignType("<i2", lambda array: array.astype(np.int32))
I8 = ForeignType("<i1", _same)
U8 = ForeignType("<u1", _same)
BOOL = ForeignType("<u1", _bool)


def decode(data: np.ndarray, kind: ForeignType, big_endian: bool = False) -> np.ndarray:
    """The elements in an array of bytes, one-dimensional; shares memory where nothing has to be converted."""
    stored = np.dtype(kind.stored)
    array = data.view(stored) if data.size else np.empty(0, stored)
    return kind.decode(array.byteswap() if big_endian else array)
