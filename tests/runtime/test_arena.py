"""Memory of calls: addresses, alignment, and reuse of scratch memory."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from graphc.runtime import arena
from graphc.runtime.arena import empty_together

ARRAYS = [
    np.zeros(()),
    np.zeros((0, 3), np.float32),
    np.arange(24, dtype=np.int8).reshape(4, 6)[1:, 2:],
    np.arange(5)[::-1],
    np.frombuffer(b"read only", np.uint8),
    np.ones((2, 3), bool).T,
]


@pytest.mark.parametrize("array", ARRAYS)
def test_the_address_is_that_of_numpy(array: np.ndarray):
    assert arena.address_of(array) == array.ctypes.data
    assert arena._slow_address(array) == array.ctypes.data


@pytest.mark.parametrize("size", [0, 1, arena.ALIGN_FROM - 1, arena.ALIGN_FROM, 100_003])
def test_outputs_own_dense_memory(size: int):
    array = arena.empty((size,), np.dtype(np.uint8), size)
    assert (array.shape, array.dtype) == ((size,), np.uint8)
    assert array.flags.c_contiguous and array.flags.writeable and array.flags.aligned
    assert size < arena.ALIGN_FROM or array.ctypes.data % 64 == 0
    array[...] = 7
    assert (array == 7).all()


def test_outputs_have_their_shape_and_type():
    array = arena.empty((3, 1, 700), np.dtype(np.float64), 3 * 700 * 8)
    assert (array.shape, array.dtype, array.strides) == ((3, 1, 700), np.float64, (5600, 5600, 8))


@pytest.mark.parametrize("array", [*ARRAYS, np.arange(1000, dtype=np.int64)[3:]])
def test_aligned_keeps_content(array: np.ndarray):
    found = arena.aligned(array)
    assert found.ctypes.data % 64 == 0 and found.flags.c_contiguous
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)
    assert arena.aligned(found) is found


def test_a_pool_hands_the_same_memory_out_again_and_grows():
    pool = arena.ArenaPool()
    first = pool.take(100)
    assert first.address % 64 == 0 and first.size == 100
    other = pool.take(100)
    assert abs(other.address - first.address) >= 100
    pool.give(first)
    assert pool.take(60) is first
    pool.give(first)
    larger = pool.take(1000)
    assert larger is not first and larger.size == 1000
    pool.give(larger)
    assert pool.nbytes == 1000
    pool.clear()
    assert pool.nbytes == 0


def test_threads_never_share_an_arena():
    pool = arena.ArenaPool()
    in_use: set[int] = set()
    clashes: list[int] = []

    def work() -> None:
        for _ in range(2000):
            mine = pool.take(64)
            if mine.address in in_use:
                clashes.append(mine.address)
            in_use.add(mine.address)
            in_use.discard(mine.address)
            pool.give(mine)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not clashes
    assert 64 <= pool.nbytes <= 8 * 64


def test_arrays_in_one_block_are_aligned_and_apart():
    kinds = [((3, 5), np.dtype(np.float32), 60), ((0,), np.dtype(np.int8), 0), ((7,), np.dtype(np.int64), 56)]
    arrays = empty_together([*kinds, ((65,), np.dtype(np.uint8), 65)])
    for number, array in enumerate(arrays):
        array.fill(number)
        assert array.ctypes.data % 64 == 0 and array.base is arrays[0].base
    assert [a.shape for a in arrays] == [(3, 5), (0,), (7,), (65,)]
    assert all((array == number).all() for number, array in enumerate(arrays))
