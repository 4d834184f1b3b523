"""Datasets: tensors by sample, subsets, concatenation, random splits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import graphc as gc
from graphc.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    MapDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from graphc.errors import ArgumentError, IndexRangeError, ShapeError


class Squares(Dataset):
    def __init__(self, count: int):
        self.count = count

    def __getitem__(self, index):
        return index**2

    def __len__(self):
        return self.count


def test_samples_of_tensors():
    x, y = np.arange(6.0, dtype=np.float32).reshape(3, 2), gc.tensor([5, 6, 7])
    data = TensorDataset(x, y)
    assert len(data) == 3
    row, label = data[1]
    assert (row.tolist(), label.item()) == ([2.0, 3.0], 6)
    x[1, 0] = 9
    assert data[1][0].tolist() == [9.0, 3.0]
    rows, labels = data.take([2, 0])
    assert (rows.tolist(), labels.tolist()) == ([[4.0, 5.0], [0.0, 1.0]], [7, 5])


def test_tensors_must_fit():
    with pytest.raises(ShapeError, match=r"\[3, 2\], \[2\]"):
        TensorDataset(gc.zeros(3, 2), gc.zeros(2))
    with pytest.raises(ArgumentError):
        TensorDataset()
    with pytest.raises(ArgumentError):
        TensorDataset(gc.tensor(1.0))


def test_subsets():
    part = Subset(Squares(10), [3, 1, 4])
    assert [part[i] for i in range(len(part))] == [9, 1, 16]
    assert not hasattr(part, "take")
    assert Subset(TensorDataset(gc.arange(9)), [3, 1, 4]).take([2, 0])[0].tolist() == [4, 3]


def test_concatenation():
    both = Squares(3) + Squares(4)
    assert isinstance(both, ConcatDataset)
    assert [both[i] for i in range(len(both))] == [0, 1, 4, 0, 1, 4, 9]
    assert both[-1] == 9
    assert both[-7] == 0
    for index in (7, -8):
        with pytest.raises(IndexRangeError):
            both[index]
    with pytest.raises(ArgumentError):
        ConcatDataset([])
    with pytest.raises(ArgumentError):
        ConcatDataset([IterableDataset()])


def test_mapping():
    data = MapDataset(Squares(3), lambda v: v + 0.5)
    assert [data[i] for i in range(len(data))] == [0.5, 1.5, 4.5]


def test_undefined_methods_say_so():
    with pytest.raises(NotImplementedError, match="__getitem__"):
        Dataset()[0]
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(IterableDataset())
    with pytest.raises(ArgumentError, match="no samples by index"):
        IterableDataset()[0]


def test_random_split_by_lengths_and_shares():
    parts = random_split(Squares(10), [7, 3], generator=gc.Generator().manual_seed(1))
    numbers = [list(p.indices) for p in parts]
    assert sorted(itertools.chain(*numbers)) == list(range(10))
    again = random_split(Squares(10), [0.7, 0.3], generator=gc.Generator().manual_seed(1))
    assert [list(p.indices) for p in again] == numbers
    other = random_split(Squares(10), [7, 3], generator=gc.Generator().manual_seed(2))
    assert [list(p.indices) for p in other] != numbers
    assert [len(p) for p in random_split(Squares(10), [1 / 3, 1 / 3, 1 / 3])] == [4, 3, 3]
    assert [len(p) for p in random_split(Squares(10), [10, 0])] == [10, 0]


@pytest.mark.parametrize("lengths", [[5, 4], [11, -1], [0.5, 0.4]])
def test_lengths_must_add_up(lengths):
    with pytest.raises(ArgumentError, match="do not add up"):
        random_split(Squares(10), lengths)


def test_datasets_side_by_side():
    pairs = StackDataset(Squares(3), [5, 6, 7])
    assert len(pairs) == 3 and pairs[2] == (Squares(3)[2], 7)
    named = StackDataset(x=Squares(3), y=[5, 6, 7])
    assert named[1] == {"x": Squares(3)[1], "y": 6}
    with pytest.raises(ArgumentError, match="or datasets with names"):
        StackDataset([1], y=[2])
    with pytest.raises(ShapeError, match=r"different lengths: \[1, 2\]"):
        StackDataset([1], [2, 3])


def test_iterable_datasets_one_after_the_other():
    class Count(IterableDataset):
        def __init__(self, *numbers):
            self.numbers = numbers

        def __iter__(self):
            return iter(self.numbers)

    chained = ChainDataset([Count(1, 2), Count(), Count(3)])
    assert list(chained) == [1, 2, 3] == list(chained)
