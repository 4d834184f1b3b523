"""``graphc.utils.data`` is ``graphc.data`` by PyTorch's path."""

from __future__ import annotations

import importlib

import pytest

import graphc
from graphc import data
from graphc.errors import ArgumentError
from graphc.utils.data import DataLoader, Dataset, DistributedSampler, Sampler, TensorDataset


def test_names_are_those_of_the_package():
    assert all(getattr(graphc.utils.data, name) is getattr(data, name) for name in data.__all__)
    for file in ("dataset", "dataloader", "sampler", "distributed"):
        assert importlib.import_module(f"graphc.utils.data.{file}").DataLoader is data.DataLoader


def test_a_loop_of_a_script():
    dataset = TensorDataset(graphc.arange(6.0), graphc.arange(6))
    batches = list(DataLoader(dataset, batch_size=4, pin_memory=True))
    assert [x.shape[0] for x, _ in batches] == [4, 2]


def test_classes_are_said_to_be_of_a_type():
    class Squares(Dataset[int]):
        def __getitem__(self, index):
            return index**2

        def __len__(self):
            return 3

    class Backwards(Sampler[int]):
        def __iter__(self):
            return iter((2, 1, 0))

    assert [x.item() for x in DataLoader(Squares(), sampler=Backwards())] == [4, 1, 0]


def test_processes_share_the_samples():
    parts = [DistributedSampler(range(5), 2, rank, shuffle=False) for rank in (0, 1)]
    assert [list(p) for p in parts] == [[0, 2, 4], [1, 3, 0]] and len(parts[0]) == 3
    parts = [list(DistributedSampler(range(7), 3, rank, seed=1, drop_last=True)) for rank in range(3)]
    assert len({i for p in parts for i in p}) == 6 == sum(map(len, parts))
    sampler = DistributedSampler(range(20), 2, 0)
    first = list(sampler)
    sampler.set_epoch(1)
    assert list(sampler) != first
    with pytest.raises(ArgumentError, match="rank 0 of 0"):
        DistributedSampler(range(5), 0)
