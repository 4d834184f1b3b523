"""Batches of a worker, and its knowledge of itself."""

from __future__ import annotations

import threading

import pytest

from graphc.data import get_worker_info
from graphc.data.fetch import END, Fetcher, WorkerInfo, enter_worker


def fetcher(dataset, batch_size=2, drop_last=False, take=None):
    return Fetcher(dataset, list if batch_size else str, take, batch_size, drop_last)


def test_batches_of_numbers():
    assert fetcher([5, 6, 7]).by_numbers(0, [2, 0]) == [7, 5]
    assert fetcher([5, 6, 7], take=tuple).by_numbers(0, [2, 0]) == (2, 0)
    assert fetcher([5, 6, 7], None).by_numbers(0, 1) == "6"
    with pytest.raises(IndexError) as caught:
        fetcher([5]).by_numbers(3, list(range(20)))
    assert caught.value.__notes__ == ["while loading batch 3 (samples 0, 1, 2, 3, 4, 5, 6, 7, ...)"]


def test_batches_of_streams():
    samples = iter("abcde")
    made = fetcher(None)
    assert [made.of_stream(i, samples) for i in range(4)] == [["a", "b"], ["c", "d"], ["e"], END]
    assert fetcher(None, drop_last=True).of_stream(0, iter("a")) is END
    assert fetcher(None, None).of_stream(0, iter("a")) == "a"


def test_a_thread_knows_that_it_is_a_worker_and_others_do_not():
    seen = []

    def run():
        enter_worker(WorkerInfo(1, 2, "data"))
        seen.append(get_worker_info())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [WorkerInfo(1, 2, "data")] and get_worker_info() is None
