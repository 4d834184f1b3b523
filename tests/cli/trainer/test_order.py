"""The order of samples: each once, another in each epoch, and any place of any epoch without those before."""

from __future__ import annotations

import pytest

from graphc.cli.trainer.order import Order
from graphc.errors import ArgumentError

EXPECTED = [[[1, 2], [4, 5], [3, 0]], [[4, 2], [0, 1], [5, 3]]]


def flat(batches: list[list[int]]) -> list[int]:
    return [number for batch in batches for number in batch]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("drop", [False, True])
def test_each_sample_comes_once_in_an_epoch(shuffle: bool, drop: bool):
    order = Order(11, 4, seed=5, shuffle=shuffle, drop_last=drop)
    batches = order.epoch(0)
    assert len(batches) == len(order) == (2 if drop else 3)
    assert [len(batch) for batch in batches] == ([4, 4] if drop else [4, 4, 3])
    assert len(set(flat(batches))) == (8 if drop else 11)
    assert shuffle != (flat(batches) == sorted(flat(batches)))


def test_an_order_follows_from_seed_and_epoch():
    order = Order(50, 8, seed=1, shuffle=True)
    assert order.epoch(3) == Order(50, 8, seed=1, shuffle=True).epoch(3)
    assert order.epoch(3)[2:] == order.epoch(3, 2)
    orders = [flat(Order(50, 8, seed=s, shuffle=True).epoch(e)) for s in (1, 2, 2**64 - 1) for e in (0, 1)]
    assert len(set(map(tuple, orders))) == 6


def test_the_order_stays_from_version_to_version():
    """A checkpoint that an older version wrote goes on as it would have there."""
    assert Order(6, 2, seed=3, shuffle=True).epoch(0) == EXPECTED[0]
    assert Order(6, 2, seed=3, shuffle=True).epoch(1) == EXPECTED[1]


@pytest.mark.parametrize(("count", "batch", "drop"), [(0, 4, False), (3, 4, True)])
def test_data_for_no_batch_are_refused(count: int, batch: int, drop: bool):
    with pytest.raises(ArgumentError, match=f"{count} samples make no batch of {batch}"):
        Order(count, batch, drop_last=drop)
