"""Layers that cut small values off, thresholds and random slopes."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from tests.nn.compare import floats, modules_agree, tensor

LAYERS = [
    ("Hardshrink", (0.3,), "Hardshrink(0.3)"),
    ("Softshrink", (0.3,), "Softshrink(0.3)"),
    ("Tanhshrink", (), "Tanhshrink()"),
    ("Threshold", (0.1, -2.0), "Threshold(threshold=0.1, value=-2.0)"),
    ("RReLU", (0.1, 0.2), "RReLU(lower=0.1, upper=0.2)"),
]


@pytest.mark.parametrize(("name", "arguments", "text"), LAYERS)
def test_as_torch(torch, name: str, arguments: tuple, text: str):
    ours, theirs = getattr(nn, name)(*arguments).eval(), getattr(torch.nn, name)(*arguments).eval()
    modules_agree(ours, theirs, floats(4, 5))
    assert repr(ours) == text


@pytest.mark.parametrize("name", ["Threshold", "RReLU"])
def test_in_place(name: str):
    layer = getattr(nn, name)(0.1, 0.2, inplace=True).eval()
    x = tensor(floats(3, 4))
    assert np.shares_memory(layer(x).numpy(), x.numpy())
    assert "inplace=True" in repr(layer)


def test_slopes_are_drawn_in_training_only():
    graphc.manual_seed(0)
    layer, x = nn.RReLU(0.1, 0.9), -graphc.ones(50)
    assert len(np.unique(layer(x).numpy())) > 40
    np.testing.assert_allclose(layer.eval()(x).numpy(), -0.5)
