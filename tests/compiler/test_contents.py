"""Contents of arrays: every write is found, and nothing else is."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import threading
from typing import Any

import numpy as np
import pytest

from graphc.compiler import contents
from graphc.compiler.contents import Content, ContentComparison
from graphc.errors import ArgumentError
from tests.runtime.threaded import thread_count

RANDOM = np.random.default_rng(0)


def counts(comparison: ContentComparison) -> list[int]:
    comparison.look()
    return [content.counter[0] for content in comparison.contents]


def test_a_change_of_any_byte_is_found_in_its_array_alone():
    arrays = [
        RANDOM.normal(size=1237).astype(np.float32),
        np.ones(5, np.int8),
        np.zeros(0),
        RANDOM.normal(size=(64, 8)),
    ]
    comparison = ContentComparison([Content(array) for array in arrays])
    before = counts(comparison)
    assert counts(comparison) == before
    for number in (0, 1, 3):
        flat = arrays[number].reshape(-1).view(np.uint8)
        for at in {0, flat.size - 1, *RANDOM.integers(0, flat.size, 40)}:
            flat[at] ^= 1 << RANDOM.integers(0, 8)
            before[number] += 1
            assert counts(comparison) == before, (number, at)


@pytest.mark.parametrize("threads", [1, 2])
def test_changes_with_a_pattern_are_found(threads: int):
    array = RANDOM.normal(size=(512, 1024))
    comparison = ContentComparison([Content(array)])
    (before,) = counts(comparison)
    with thread_count(threads):
        for change in (
            lambda: np.negative(array, out=array),
            lambda: np.multiply(array, 2, out=array),
            lambda: array.__setitem__(slice(0, 2), array[1::-1].copy()),
            lambda: array.__setitem__(slice(None), array[:, ::-1].copy()),
            lambda: array.__setitem__(slice(None), np.roll(array, 4096 // 8)),
            lambda: array.fill(0),
        ):
            change()
            assert counts(comparison) == [before + 1], change
            before += 1
            assert counts(comparison) == [before]


def test_sums_do_not_depend_on_where_an_array_lies_nor_on_threads():
    block = np.zeros(300_000, np.uint8)
    found = []
    for start, threads in ((0, 1), (1, 1), (37, 2)):
        content = Content(block[start : start + 262_147])
        content.array[:] = np.arange(262_147) % 251
        with thread_count(threads):
            ContentComparison([content]).look()
        found.append(content.sums)
    assert all((sums == found[0]).all() for sums in found) and len(np.unique(found[0])) > 60


def test_a_content_may_belong_to_several_comparisons_in_several_threads():
    content = Content(np.zeros(10_000))
    comparisons = [ContentComparison([content]) for _ in range(4)]
    (before,) = counts(comparisons[0])

    def look(comparison: ContentComparison) -> None:
        for _ in range(50):
            comparison.look()

    content.array[7] = 1
    workers = [threading.Thread(target=look, args=(c,)) for c in comparisons]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert content.counter == [before + 1]


def test_arrays_that_are_not_dense_are_refused():
    with pytest.raises(ArgumentError, match="dense"):
        Content(np.zeros((4, 4)).T[1:])


def watched() -> tuple[ContentComparison, list[np.ndarray]]:
    """Large contents that were quiet for a while, of which two lie in one block and share a page."""
    block = RANDOM.normal(size=60_000)
    arrays = [block[:25_001], block[25_001:], RANDOM.normal(size=40_000), np.zeros(9)]
    comparison = ContentComparison([Content(array) for array in arrays])
    for _ in range(2 * contents.QUIET):
        comparison.look()
    if not all(c.is_watched for c in comparison.contents[:3]):
        pytest.skip("this system cannot watch pages")
    return comparison, arrays


def test_quiet_contents_are_read_again_once_their_pages_were_written_to(monkeypatch: pytest.MonkeyPatch):
    comparison, arrays = watched()
    before = counts(comparison)
    read: list[int] = []
    looked = Content.looked
    monkeypatch.setattr(Content, "looked", lambda self, changed: (read.append(len(self.array)), looked(self, changed)))
    assert counts(comparison) == before and read == []
    for number, at in ((0, -1), (1, 0), (2, 20_000), (3, 4)):
        arrays[number][at] += 1
        before[number] += 1
        assert counts(comparison) == before, number
    arrays[0][0] += 0
    assert counts(comparison) == before


def test_what_one_comparison_has_seen_written_is_not_lost_for_others():
    comparison, arrays = watched()
    first, second = ContentComparison(comparison.contents[:1]), ContentComparison(comparison.contents[1:2])
    before = comparison.contents[1].counter[0]
    arrays[1][0] = 5  # on the page that both share
    first.look()
    assert comparison.contents[1].counter[0] == before
    second.look()
    assert comparison.contents[1].counter[0] == before + 1


def test_pages_are_watched_again_after_a_longer_while():
    comparison, arrays = watched()
    content = comparison.contents[2]
    arrays[2][7] = 9
    comparison.look()
    assert not content.is_watched and content.patience == 2 * contents.QUIET
    for _ in range(2 * contents.QUIET + 1):
        comparison.look()
    assert content.is_watched
    (before,) = content.counter
    arrays[2][7] = 10
    comparison.look()
    assert content.counter == [before + 1]


def test_a_content_that_is_gone_leaves_its_neighbours_seen():
    comparison, arrays = watched()
    second = ContentComparison(comparison.contents[1:2])
    content = comparison.contents[1]
    del comparison
    gc.collect()
    (before,) = content.counter
    for at in (0, 7, 30_000):
        arrays[1][at] += 1
        second.look()
        before += 1
        assert content.counter == [before]


def test_a_child_after_fork_sees_writes():
    comparison, arrays = watched()
    before = counts(comparison)
    child = os.fork()
    if not child:
        arrays[0][5] += 1
        os._exit(0 if counts(comparison) == [before[0] + 1, *before[1:]] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert counts(comparison) == before
    arrays[0][5] += 1
    assert counts(comparison) == [before[0] + 1, *before[1:]]


def test_shared_memory_is_read_in_every_look():
    memory = mmap.mmap(-1, 1 << 17)
    comparison = ContentComparison([Content(np.frombuffer(memory, np.uint8))])
    for _ in range(2 * contents.QUIET):
        (before,) = counts(comparison)
    assert not comparison.contents[0].is_watched
    memory[77] = 1
    assert counts(comparison) == [before + 1]


def test_words_tell_that_something_was_found_or_that_somebody_compares():
    array = np.ones(100)
    comparison = ContentComparison([Content(array)])
    comparison.look()
    words = contents.quiet_words(contents.changes())

    def same() -> bool:
        return all(ctypes.c_uint64.from_address(at).value == value for at, value in words.items())

    comparison.look()
    assert same() and comparison.table != 0
    array[3] = 2
    comparison.look()
    assert not same()
    words = contents.quiet_words(contents.changes())
    seen: list[bool] = []
    comparison._reading.read = lambda: seen.append(same())  # type: ignore[method-assign]
    comparison.look()
    assert seen == [False] and same()
    assert ContentComparison([Content(np.zeros(contents.LARGE, np.int8))]).table == 0


@pytest.mark.parametrize("size", [100, contents.LARGE], ids=["small", "large"])
def test_a_write_is_seen_by_all_behind_a_look_that_was_interrupted(size: int, monkeypatch: pytest.MonkeyPatch):
    array = np.ones(size)
    content = Content(array)
    comparison, other = ContentComparison([content]), ContentComparison([content])
    for _ in range(contents.QUIET + 1):
        (before,), changes = counts(comparison), contents.changes()
    other.look()
    array[3] = 2

    def interrupted(self: Any) -> None:
        self._function(self.address)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(contents._Reading, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            comparison.look()
    assert contents.changes() > changes
    assert counts(other)[0] > before
