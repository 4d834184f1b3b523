"""Rounds look at every element within so many calls, and say which tensor is not finite."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.calls.bindings import Slot
from graphc.calls.first_nan.state_rounds import CALLS, Rounds


@pytest.mark.parametrize("sizes", [(1, 1, 1), (1000, 3, 0, 77), (5,)])
def test_every_element_is_looked_at_within_so_many_calls(sizes):
    random = np.random.default_rng(0)
    tensors = {f"t{i}": graphc.tensor(random.normal(size=n)) for i, n in enumerate(sizes)}
    rounds = Rounds({path: Slot(t, None) for path, t in tensors.items()})
    assert [rounds.look() for _ in range(2 * CALLS)] == [None] * 2 * CALLS
    for path, tensor in tensors.items():
        for i in random.integers(tensor.shape[0], size=5) if tensor.shape[0] else ():
            kept = tensor._data[i]
            tensor._data[i] = random.choice([np.nan, np.inf, -np.inf])
            assert path in [rounds.look() for _ in range(CALLS)]
            tensor._data[i] = kept
    assert [rounds.look() for _ in range(CALLS)] == [None] * CALLS


def test_large_numbers_are_finite():
    tensor = graphc.full((4,), 1e30)
    rounds = Rounds({"t": Slot(tensor, None)})
    with np.errstate(all="raise"):
        assert [rounds.look() for _ in range(4)] == [None] * 4


def test_no_tensors_are_looked_at():
    assert Rounds({}).look() is None
