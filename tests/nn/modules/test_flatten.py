"""Flatten and Unflatten."""

from __future__ import annotations

import pytest

import graphc
from graphc import nn
from tests.nn.compare import floats, modules_agree


@pytest.mark.parametrize("args", [(), (0,), (1, 2), (2, -1)])
def test_flatten_as_torch(torch, args: tuple[int, ...]):
    modules_agree(nn.Flatten(*args), torch.nn.Flatten(*args), floats(2, 3, 4, 5))


@pytest.mark.parametrize("sizes", [(2, 6), (3, -1), (2, 2, 3)])
def test_unflatten_as_torch(torch, sizes: tuple[int, ...]):
    modules_agree(nn.Unflatten(1, sizes), torch.nn.Unflatten(1, sizes), floats(2, 12, 3))


def test_a_batch_of_one_stays_a_batch():
    assert nn.Flatten()(graphc.zeros(1, 2, 3)).shape == (1, 6)


def test_text():
    assert repr(nn.Flatten()) == "Flatten(start_dim=1, end_dim=-1)"
    assert repr(nn.Unflatten(1, (2, 3))) == "Unflatten(dim=1, unflattened_size=(2, 3))"
