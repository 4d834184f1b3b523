"""Flatten and Unflatten."""

from __future__ import annotations

import graphc
from graphc import nn


def test_a_batch_of_one_stays_a_batch():
    assert nn.Flatten()(graphc.zeros(1, 2, 3)).shape == (1, 6)


def test_text():
    assert repr(nn.Flatten()) == "Flatten(start_dim=1, end_dim=-1)"
    assert repr(nn.Unflatten(1, (2, 3))) == "Unflatten(dim=1, unflattened_size=(2, 3))"
