"""Contents of arrays: every write is found, and nothing else is."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from graphc.compiler.contents import Comparison, Content
from graphc.errors import ArgumentError
from tests.runtime.threaded import thread_count

RANDOM = np.random.default_rng(0)


def counts(comparison: Comparison) -> list[int]:
    comparison.look()
    return [content.counter[0] for content in comparison.contents]


def test_a_change_of_any_byte_is_found_in_its_array_alone():
    arrays = [
        RANDOM.normal(size=1237).astype(np.float32),
        np.ones(5, np.int8),
        np.zeros(0),
        RANDOM.normal(size=(64, 8)),
    ]
    comparison = Comparison([Content(array) for array in arrays])
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
    comparison = Comparison([Content(array)])
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
            Comparison([content]).look()
        found.append(content.sums)
    assert all((sums == found[0]).all() for sums in found) and len(np.unique(found[0])) > 60


def test_a_content_may_belong_to_several_comparisons_in_several_threads():
    content = Content(np.zeros(10_000))
    comparisons = [Comparison([content]) for _ in range(4)]
    (before,) = counts(comparisons[0])

    def look(comparison: Comparison) -> None:
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
