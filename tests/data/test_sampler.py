"""Samplers: orders are complete, differ from epoch to epoch, and follow from the seed."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from graphc.distributed import threads
from graphc.errors import ArgumentError

DATA = range(50)


def test_sequential():
    assert list(SequentialSampler(DATA)) == list(DATA)
    assert len(SequentialSampler(DATA)) == 50


def test_random_orders():
    sampler = RandomSampler(DATA, generator=3)
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(DATA)
    assert first != second
    again = RandomSampler(DATA, generator=gc.Generator().manual_seed(3))
    assert [list(again), list(again)] == [first, second]


def test_the_default_generator_decides_otherwise():
    gc.manual_seed(5)
    first = list(RandomSampler(DATA))
    assert list(RandomSampler(DATA)) != first
    gc.manual_seed(5)
    assert list(RandomSampler(DATA)) == first


def test_more_and_fewer_samples_than_there_are():
    many = list(RandomSampler(DATA, num_samples=120, generator=0))
    assert (np.bincount(many[:100]) == 2).all()
    assert len(set(many[100:])) == 20
    assert len(list(RandomSampler(DATA, num_samples=7, generator=0))) == 7
    drawn = list(RandomSampler(DATA, replacement=True, num_samples=500, generator=0))
    assert len(drawn) == 500
    assert set(drawn) <= set(DATA)
    assert np.bincount(drawn).max() > 10
    assert list(RandomSampler([])) == []
    with pytest.raises(ArgumentError):
        RandomSampler([], num_samples=3)


def test_parts():
    sampler = SubsetRandomSampler([4, 8, 15, 16, 23, 42], generator=1)
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == [4, 8, 15, 16, 23, 42]
    assert len(sampler) == 6


def test_weights():
    sampler = WeightedRandomSampler([0, 1, 3], 4000, generator=2)
    counts = np.bincount(list(sampler), minlength=3)
    assert counts[0] == 0
    assert counts[2] / counts[1] == pytest.approx(3, rel=0.15)
    assert len(sampler) == 4000
    assert sorted(WeightedRandomSampler([1, 0, 2, 5], 3, replacement=False, generator=0)) == [0, 2, 3]
    for weights in ([-1, 2], [0, 0], [float("nan")], [[1.0]]):
        with pytest.raises(ArgumentError, match="weights"):
            WeightedRandomSampler(weights, 1)
    with pytest.raises(ArgumentError, match="once each"):
        WeightedRandomSampler([1, 0, 2], 3, replacement=False)


def test_batches():
    assert list(BatchSampler(range(7), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(BatchSampler(range(7), 3, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]
    assert (len(BatchSampler(range(7), 3)), len(BatchSampler(range(7), 3, True))) == (3, 2)
    assert list(BatchSampler([], 3)) == []
    for size in (0, -1, 2.5, True):
        with pytest.raises(ArgumentError):
            BatchSampler(range(7), size)


def test_a_sampler_without_an_order_says_so():
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(Sampler())


@pytest.mark.parametrize("count, drop_last", [(10, False), (10, True), (2, False), (9, False)])
def test_processes_deal_the_samples_among_themselves(count: int, drop_last: bool):
    def dealt(_: int) -> list[list[int]]:
        sampler = DistributedSampler(range(count), shuffle=False, drop_last=drop_last)
        turned = DistributedSampler(range(count), seed=3, drop_last=drop_last)
        assert len(sampler) == len(list(sampler)) == len(list(turned))
        return [list(sampler), list(turned)]

    found = threads.run(3, dealt)
    whole = list(range(count))
    for rank, (plain, _) in enumerate(found):
        wanted = (whole * 3)[: -(-count // 3) * 3] if not drop_last else whole[: count // 3 * 3]
        assert plain == wanted[rank::3]
    everyone = {i for _, mixed in found for i in mixed}
    assert everyone == set(whole) if not drop_last else len(everyone) == count // 3 * 3


def test_one_process_reads_all_samples():
    assert list(DistributedSampler(range(4), shuffle=False)) == [0, 1, 2, 3]
    assert list(DistributedSampler(range(4), 2, 1, shuffle=False)) == [1, 3]
    with pytest.raises(ArgumentError, match="rank 2 of 2 processes"):
        DistributedSampler(range(4), 2, 2)
