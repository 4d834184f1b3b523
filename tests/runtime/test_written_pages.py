"""Pages that were written to."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import pytest

from graphc.runtime.written_pages import PAGE, WrittenPages, private_memory


@pytest.fixture
def pages():
    try:
        found = WrittenPages()
    except OSError:
        pytest.skip("this system cannot watch pages")
    yield found
    found.close()


@pytest.fixture
def block():
    """200 pages of private memory."""
    memory = mmap.mmap(-1, 200 * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(memory, np.uint8)


def test_the_pages_written_to_since_the_last_look(pages: WrittenPages, block: np.ndarray, tmp_path: Path):
    start = block.ctypes.data
    stop = start + block.nbytes
    pages.watch(start, stop)
    assert list(pages.look(start, stop)) == [(start, stop)]
    assert list(pages.look(start, stop)) == []
    block[3 * PAGE] = 1
    block[6 * PAGE - 1 : 6 * PAGE + 1] = 1
    expected = [(start + 3 * PAGE, start + 4 * PAGE), (start + 5 * PAGE, start + 7 * PAGE)]
    assert list(pages.look(start, stop)) == expected
    (tmp_path / "data").write_bytes(bytes(PAGE))
    with (tmp_path / "data").open("rb") as file:
        assert file.readinto(memoryview(block)[10 * PAGE : 11 * PAGE]) == PAGE
    assert list(pages.look(start, stop)) == [(start + 10 * PAGE, start + 11 * PAGE)]
    block[:: 2 * PAGE] = 3
    assert len(list(pages.look(start, stop))) == 100
    assert list(pages.look(start, stop)) == []


def test_pages_that_are_not_watched_are_an_error(pages: WrittenPages, block: np.ndarray):
    start = block.ctypes.data
    with pytest.raises(OSError):
        list(pages.look(start, start + PAGE))
    pages.watch(start, start + 4 * PAGE)
    pages.forget(start + PAGE, start + 2 * PAGE)
    with pytest.raises(OSError):
        list(pages.look(start, start + 4 * PAGE))
    pages.forget(PAGE, 2 * PAGE)


def test_a_child_after_fork_does_not_watch(pages: WrittenPages, block: np.ndarray):
    start = block.ctypes.data
    pages.watch(start, start + PAGE)
    list(pages.look(start, start + PAGE))
    child = os.fork()
    if not child:
        block[0] = 1
        os._exit(0)
    os.waitpid(child, 0)
    assert list(pages.look(start, start + PAGE)) == []
    block[0] = 2
    assert list(pages.look(start, start + PAGE)) == [(start, start + PAGE)]


def test_private_memory_holds_arrays_and_no_files(block: np.ndarray, tmp_path: Path):
    (tmp_path / "data").write_bytes(bytes(PAGE))
    with (tmp_path / "data").open("r+b") as file:
        copied = np.frombuffer(mmap.mmap(file.fileno(), PAGE, flags=mmap.MAP_PRIVATE), np.uint8)
    shared = np.frombuffer(mmap.mmap(-1, PAGE), np.uint8)
    ranges = private_memory()

    def holds(array: np.ndarray) -> bool:
        return any(low <= array.ctypes.data < high for low, high in ranges)

    assert holds(block) and not holds(copied) and not holds(shared)
