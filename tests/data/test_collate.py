"""Joining of samples: every kind of entry, nesting, and errors that name the entry."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pytest

import graphc as gc
from graphc.data import default_collate, default_convert
from graphc.errors import ArgumentError, ShapeError


class Pair(NamedTuple):
    x: float
    y: int


@pytest.mark.parametrize(
    ("batch", "dtype", "values"),
    [
        ([1, 2], gc.int64, [1, 2]),
        ([0.5, 2.0], gc.float64, [0.5, 2.0]),
        ([True, False], gc.bool_, [True, False]),
        ([np.float32(1), np.float32(2)], gc.float32, [1.0, 2.0]),
        ([np.uint8([1, 2]), np.uint8([3, 4])], gc.uint8, [[1, 2], [3, 4]]),
        ([gc.tensor([1.0]), gc.tensor([2.0])], gc.float32, [[1.0], [2.0]]),
        ([gc.tensor(3), gc.tensor(4)], gc.int64, [3, 4]),
    ],
)
def test_numbers_and_arrays(batch, dtype, values):
    joined = default_collate(batch)
    assert joined.dtype is dtype
    assert joined.tolist() == values


def test_nesting():
    joined = default_collate([{"a": (1, [2.0, "x"])}, {"a": (3, [4.0, "y"])}])
    assert list(joined) == ["a"]
    numbers, (floats, texts) = joined["a"]
    assert (numbers.tolist(), floats.tolist(), texts) == ([1, 3], [2.0, 4.0], ["x", "y"])
    pairs = default_collate([Pair(0.5, 1), Pair(1.5, 2)])
    assert isinstance(pairs, Pair)
    assert (pairs.x.tolist(), pairs.y.tolist()) == ([0.5, 1.5], [1, 2])
    assert isinstance(default_collate([OrderedDict(a=1)]), OrderedDict)
    assert default_collate([b"x", b"y"]) == [b"x", b"y"]


@pytest.mark.parametrize(
    ("batch", "error", "text"),
    [
        ([gc.zeros(2), gc.zeros(3)], ShapeError, r"samples have shapes \[2\] and \[3\]"),
        ([(1, np.zeros(2)), (1, np.zeros(3))], ShapeError, r"samples\[1\] have shapes"),
        ([[1], [1, 2]], ShapeError, "1 and 2 entries"),
        ([{"a": 1}, {"b": 1}], ArgumentError, "different keys"),
        ([{"a": None}], ArgumentError, r"samples\['a'\] hold a NoneType"),
        ([], ArgumentError, "empty batch"),
    ],
)
def test_what_cannot_be_joined(batch, error, text):
    with pytest.raises(error, match=text):
        default_collate(batch)


def test_single_samples_keep_their_form():
    sample = default_convert({"a": np.float32([1, 2]), "b": (3, "x", np.int64(4)), "c": Pair(1.0, 2)})
    assert isinstance(sample["a"], gc.Tensor)
    assert sample["b"][:2] == (3, "x")
    assert sample["b"][2].item() == 4
    assert sample["c"] == Pair(1.0, 2)


def test_types_are_those_of_pytorch(torch):
    theirs = pytest.importorskip("torch.utils.data").default_collate

    batch = [(1, 0.5, True, "a", np.float32(2), {"k": [1, 2]}), (2, 1.5, False, "b", np.float32(3), {"k": [3, 4]})]
    ours, wanted = default_collate(batch), theirs(batch)
    assert type(ours) is type(wanted)
    for mine, other in zip([*ours[:5], *ours[5]["k"]], [*wanted[:5], *wanted[5]["k"]], strict=True):
        if isinstance(other, torch.Tensor):
            assert (str(other.dtype), other.tolist()) == (f"torch.{mine.dtype.long_name}", mine.tolist())
        else:
            assert mine == list(other)
