"""Memory of calls: aligned arrays, addresses of arrays, and reusable scratch memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from graphc.files.container import ALIGNMENT

ALIGN_FROM = 4096
"""Bytes from which an output is aligned; for smaller ones the cost of aligning is larger than its gain."""

_word = ctypes.c_size_t.from_address
_WORD = ctypes.sizeof(ctypes.c_size_t)


def _probe() -> int:
    """Return the offset of the data pointer in an ndarray object, or -1 for an unknown object layout."""
    arrays = [np.zeros(5, np.float32), np.zeros((2, 3), np.int8)[1:], np.zeros(())]
    for offset in range(_WORD, 8 * _WORD, _WORD):
        if all(_word(id(a) + offset).value == a.ctypes.data for a in arrays):
            return offset
    return -1


DATA_OFFSET = _probe()
"""Offset of the data pointer in an ndarray object. Reading it there takes a sixth of the time of ``ndarray.ctypes``."""


_UINT8 = np.dtype(np.uint8)


def _fast_address(array: np.ndarray) -> int:
    return _word(id(array) + DATA_OFFSET).value


def _slow_address(array: np.ndarray) -> int:
    return array.ctypes.data


address_of: Callable[[np.ndarray], int] = _fast_address if DATA_OFFSET > 0 else _slow_address
"""Address of the first element of an array."""


def addresses_of(arrays: Sequence[np.ndarray]) -> list[int]:
    """Return ``address_of`` each array, in one call."""
    if DATA_OFFSET > 0:
        return [_word(id(a) + DATA_OFFSET).value for a in arrays]
    return [address_of(a) for a in arrays]


def empty(shape: tuple[int, ...], dtype: np.dtype, nbytes: int) -> np.ndarray:
    """Return an uninitialised dense array of ``nbytes`` bytes, 64-byte aligned when it is large."""
    if nbytes < ALIGN_FROM:
        return np.empty(shape, dtype)
    block = np.empty(nbytes + ALIGNMENT, _UINT8)
    return np.ndarray(shape, dtype, block, -address_of(block) % ALIGNMENT)


def empty_together(kinds: Sequence[tuple[tuple[int, ...], np.dtype, int]]) -> list[np.ndarray]:
    """Return uninitialised dense arrays of these (shape, element type, bytes), each 64-byte aligned, in one block of
    memory. The block lives as long as one of them does. For a large block, numpy asks the system for large pages.
    Reading these in order is up to twice as fast as reading separate arrays, each of which is too small for large
    pages."""
    block = np.empty(sum(align_up(nbytes) for _, _, nbytes in kinds) + ALIGNMENT, _UINT8)
    start, arrays = -address_of(block) % ALIGNMENT, []
    for shape, dtype, nbytes in kinds:
        arrays.append(np.ndarray(shape, dtype, block, start))
        start += align_up(nbytes)
    return arrays


def aligned(array: np.ndarray) -> np.ndarray:
    """Return a dense array with the same content that starts at a multiple of 64: ``array`` itself if it does."""
    if array.flags.c_contiguous and address_of(array) % ALIGNMENT == 0:
        return array
    block = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    copy = np.ndarray(array.shape, array.dtype, block, -address_of(block) % ALIGNMENT)
    copy[...] = array
    return copy


class Arena:
    """Scratch memory of one call at a time."""

    __slots__ = ("_block", "address", "size")

    def __init__(self, size: int):
        self._block = np.empty(size + ALIGNMENT, np.uint8)
        self.address = align_up(address_of(self._block))
        """Address of the first byte, a multiple of 64."""
        self.size = size
        """Number of bytes from ``address`` on."""


def align_up(address: int) -> int:
    """Return the next multiple of 64."""
    return address + -address % ALIGNMENT


class ArenaPool:
    """Idle arenas. A call takes the one used last, so a thread that calls again meets warm memory.

    There are at most as many arenas as calls that ever ran at the same time.
    """

    def __init__(self) -> None:
        self._free: list[Arena] = []

    def take(self, size: int) -> Arena:
        """Return an arena of at least ``size`` bytes, for this caller alone until ``give`` is called."""
        try:
            # NOTE: list.pop and list.append are atomic, so threads need no lock.
            arena = self._free.pop()
        except IndexError:
            return Arena(size)
        return arena if arena.size >= size else Arena(size)

    def give(self, arena: Arena) -> None:
        """Put an arena back."""
        self._free.append(arena)

    def clear(self) -> None:
        """Free the idle arenas."""
        self._free.clear()

    @property
    def nbytes(self) -> int:
        """Bytes of the idle arenas."""
        return sum(arena.size for arena in self._free)


POOL = ArenaPool()
"""The arenas of the process, shared by all programs."""
