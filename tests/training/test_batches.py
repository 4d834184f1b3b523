"""Batches of loaders: an epoch continues in the middle with the same batches and random states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.errors import ArgumentError
from graphc.training.batches import LoaderBatches
from graphc.utils.data import DataLoader, Dataset, TensorDataset


class Noisy(Dataset):
    """Samples with noise of the default generator."""

    def __getitem__(self, index: int) -> Any:
        return gc.tensor(float(index)) + gc.rand(())

    def __len__(self) -> int:
        return 12


def read(batches: Any) -> list[list[float]]:
    return [batch.tolist() for batch in batches]


@pytest.mark.parametrize("generator", [None, 5])
@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_continues(generator: int | None, workers: int):
    def loader() -> DataLoader:
        return DataLoader(Noisy(), 4, shuffle=True, generator=generator, num_workers=workers)

    gc.manual_seed(2)
    batches = LoaderBatches(loader())
    read(batches.epoch(0, 0))
    second = batches.epoch(1, 0)
    first, state = next(second).tolist(), None
    state = batches.state_dict()
    rest = read(second)
    after = batches.state_dict()["present"]

    gc.manual_seed(77)
    again = LoaderBatches(loader())
    again.load_state_dict(state)
    assert read(again.epoch(1, 1)) == rest and first not in rest
    assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(again.state_dict()["present"], after, strict=True))


def test_lengths():
    assert LoaderBatches(DataLoader(TensorDataset(gc.arange(7)), 2)).length == 4
    assert LoaderBatches([1, 2]).length == 2

    class Endless:
        def __iter__(self) -> Any:
            return iter(())

    assert LoaderBatches(Endless()).length == 0


def test_what_cannot_be_read_twice_is_refused():
    for loader in (iter([1]), 3):
        with pytest.raises(ArgumentError, match="cannot be read in each epoch"):
            LoaderBatches(loader)


def test_the_state_of_another_loader_is_refused():
    own = LoaderBatches(DataLoader(Noisy(), 4, shuffle=True, generator=5))
    with pytest.raises(ArgumentError, match="has 2 random generators, and the loader 1"):
        LoaderBatches(DataLoader(Noisy(), 4, shuffle=True)).load_state_dict(own.state_dict())
