"""DataLoader: batches, their order with any number of threads, reading ahead, errors with their context."""

from __future__ import annotations

import itertools
import threading
import time

import numpy as np
import pytest

import graphc as gc
from graphc.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    get_worker_info,
)
from graphc.errors import ArgumentError


class Numbers(Dataset):
    """Sample i is i; some take longer than others, and one may fail."""

    def __init__(self, count: int, bad: int | None = None, wait: float = 0.0):
        self.count = count
        self.bad = bad
        self.wait = wait
        self.read: list[int] = []

    def __getitem__(self, index):
        if index == self.bad:
            raise KeyError(f"sample {index} is broken")
        time.sleep(self.wait * (index % 3))
        self.read.append(index)
        return index

    def __len__(self):
        return self.count


class Stream(IterableDataset):
    def __init__(self, count: int):
        self.count = count

    def __iter__(self):
        return iter(range(self.count))


def threaded(*arguments, **options) -> DataLoader:
    """A loader whose workers are threads."""
    return DataLoader(*arguments, **options, multiprocessing_context="thread")


def lists(loader) -> list[list[int]]:
    return [batch.tolist() for batch in loader]


@pytest.mark.parametrize("workers", [0, 1, 4])
@pytest.mark.parametrize("data", [Numbers(10, wait=0.002), Stream(10)])
def test_batches_in_order(data, workers):
    loader = threaded(data, batch_size=4, num_workers=workers)
    assert lists(loader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert lists(loader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert lists(threaded(data, 4, drop_last=True, num_workers=workers)) == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize("workers", [0, 3])
def test_shuffling_follows_from_the_seed_alone(workers):
    loader = threaded(Numbers(30), 7, shuffle=True, generator=11, num_workers=workers)
    first, second = lists(loader), lists(loader)
    assert sorted(itertools.chain(*first)) == list(range(30))
    assert first != second
    same = DataLoader(Numbers(30), 7, shuffle=True, generator=gc.Generator().manual_seed(11))
    assert [lists(same), lists(same)] == [first, second]


def test_lengths():
    assert len(DataLoader(Numbers(10), 4)) == 3
    assert len(DataLoader(Numbers(10), 4, drop_last=True)) == 2
    assert len(DataLoader(Numbers(10), batch_size=None)) == 10
    assert len(DataLoader(Numbers(10), batch_sampler=[[1], [2, 3]])) == 2
    assert len(DataLoader(Numbers(0), 4)) == 0
    assert lists(DataLoader(Numbers(0), 4)) == []
    with pytest.raises(TypeError):
        len(DataLoader(Stream(4), 2))


def test_other_orders():
    assert lists(DataLoader(Numbers(10), 2, sampler=[5, 1, 7])) == [[5, 1], [7]]
    assert lists(DataLoader(Numbers(10), batch_sampler=[[9], [2, 3]])) == [[9], [2, 3]]
    assert list(DataLoader(Numbers(3), batch_size=None)) == [0, 1, 2]
    assert list(threaded(Stream(3), batch_size=None, num_workers=2)) == [0, 1, 2]


@pytest.mark.parametrize("workers", [0, 2])
def test_tensors_are_taken_in_one_go_with_the_same_result(workers):
    x, y = np.random.default_rng(0).standard_normal((11, 3)).astype(np.float32), np.arange(11)
    data = Subset(TensorDataset(x, y), list(range(10, -1, -1)))
    fast = list(threaded(data, 4, num_workers=workers))
    slow = list(DataLoader(data, 4, collate_fn=gc.data.default_collate))
    assert [type(b) for b in fast] == [type(b) for b in slow]
    for mine, other in zip(fast, slow, strict=True):
        for a, b in zip(mine, other, strict=True):
            assert a.dtype is b.dtype
            np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert fast[0][1].tolist() == [10, 9, 8, 7]


def test_own_functions_join_samples():
    assert list(DataLoader(Numbers(5), 2, collate_fn=sum)) == [1, 5, 4]
    assert list(threaded(Numbers(5), 2, collate_fn=sum, num_workers=2)) == [1, 5, 4]


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_keep_their_class_and_name_the_samples(workers):
    loader = iter(threaded(Numbers(10, bad=5), 2, num_workers=workers))
    assert next(loader).tolist() == [0, 1]
    assert next(loader).tolist() == [2, 3]
    with pytest.raises(KeyError, match="sample 5 is broken") as caught:
        next(loader)
    note = caught.value.__notes__[0]
    assert note.startswith("while loading batch 2 (samples 4, 5)")
    assert ("in worker" in note) == bool(workers)
    assert caught.traceback[-1].name == "__getitem__"
    assert list(loader) == []


def test_errors_of_streams():
    class Broken(IterableDataset):
        def __iter__(self):
            yield 1
            yield 2
            raise OSError("the line is cut")

    for workers in (0, 1):
        loader = iter(threaded(Broken(), 2, num_workers=workers))
        assert next(loader).tolist() == [1, 2]
        with pytest.raises(OSError, match="the line is cut"):
            next(loader)


def test_workers_read_ahead_but_not_without_bound():
    data = Numbers(1000)
    loader = iter(threaded(data, 1, num_workers=2, prefetch_factor=3))
    next(loader)
    deadline = time.monotonic() + 10
    while len(data.read) < 7 and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.05)
    assert len(data.read) == 7
    loader.close()


def test_samples_are_read_at_the_same_time():
    barrier = threading.Barrier(3, timeout=20)

    class Together(Numbers):
        def __getitem__(self, index):
            barrier.wait()
            return index

    assert lists(threaded(Together(6), 1, num_workers=3)) == [[i] for i in range(6)]


def test_workers_end_with_the_iteration():
    def workers() -> int:
        return sum(t.name.startswith("graphc-data") for t in threading.enumerate())

    loader = threaded(Numbers(100), 2, num_workers=3)
    for _ in loader:
        break
    iterator = iter(loader)
    next(iterator)
    assert workers() >= 1
    iterator.close()
    deadline = time.monotonic() + 10
    while workers() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert workers() == 0


def test_workers_know_themselves():
    seen, started = set(), []

    class Asking(Numbers):
        def __getitem__(self, index):
            info = get_worker_info()
            assert info is not None
            assert info.dataset is self
            seen.add((info.id, info.num_workers))
            time.sleep(0.002)
            return index

    list(threaded(Asking(20), 1, num_workers=2, worker_init_fn=started.append))
    assert seen <= {(0, 2), (1, 2)}
    assert {i for i, _ in seen} == set(started)
    assert get_worker_info() is None


def test_a_worker_that_cannot_start_is_reported():
    def fail(number):
        raise RuntimeError("no database")

    with pytest.raises(RuntimeError):
        list(threaded(Numbers(4), 1, num_workers=1, worker_init_fn=fail))


def test_a_batch_that_takes_too_long():
    event = threading.Event()

    class Stuck(Numbers):
        def __getitem__(self, index):
            event.wait(20)
            return index

    with pytest.raises(TimeoutError, match="no batch came within"):
        next(iter(threaded(Stuck(4), 1, num_workers=1, timeout=0.05)))
    event.set()


def test_gradient_mode_reaches_the_workers():
    class Asking(Numbers):
        def __getitem__(self, index):
            return gc.is_grad_enabled()

    loader = threaded(Asking(2), 2, num_workers=1)
    assert next(iter(loader)).tolist() == [True, True]
    with gc.no_grad():
        assert next(iter(loader)).tolist() == [False, False]


@pytest.mark.parametrize(
    "options",
    [
        {"shuffle": True, "sampler": [1]},
        {"batch_sampler": [[1]], "batch_size": 2},
        {"batch_sampler": [[1]], "shuffle": True},
        {"batch_size": 0},
        {"batch_size": 1.5},
        {"batch_size": None, "drop_last": True},
        {"num_workers": -1},
        {"prefetch_factor": 0},
        {"timeout": -1},
        {"multiprocessing_context": "green"},
    ],
)
def test_wrong_options(options):
    with pytest.raises(ArgumentError):
        DataLoader(Numbers(4), **options)


def test_streams_have_an_order_of_their_own():
    for options in ({"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}):
        with pytest.raises(ArgumentError, match="its own order"):
            DataLoader(Stream(4), **options)
