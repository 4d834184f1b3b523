"""Dropout layers: the training switch, channels, draws that repeat by module path."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError


@pytest.mark.parametrize("layer", [nn.Dropout(0.5), nn.Dropout1d(0.5), nn.Dropout2d(0.5)])
def test_only_in_training(layer: nn.Module):
    rank = {"Dropout": 2, "Dropout1d": 3, "Dropout2d": 4}[type(layer).__name__]
    x = graphc.ones(20, 30, *(2,) * (rank - 2))
    graphc.manual_seed(0)
    y = layer.train()(x).numpy()
    assert set(np.unique(y)) == {0.0, 2.0}
    flat = y.reshape(600, -1)
    assert (flat == flat[:, :1]).all()
    assert layer.eval()(x) is x


def test_layers_of_one_call_draw_differently():
    net = nn.Sequential(nn.Dropout(0.5), nn.Identity(), nn.Dropout(0.5))
    seen = []
    for layer in (net[0], net[2]):
        layer.register_forward_hook(lambda module, args, output: seen.append(output.numpy() == 0))
    graphc.manual_seed(0)
    net(graphc.ones(64))
    first, second = seen
    assert (second & ~first).any()


def test_a_call_repeats_with_the_seed():
    net = nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.2))
    graphc.manual_seed(5)
    a, b = net(graphc.ones(64)).numpy(), net(graphc.ones(64)).numpy()
    graphc.manual_seed(5)
    np.testing.assert_array_equal(net(graphc.ones(64)).numpy(), a)
    assert (a != b).any()


def test_text_and_errors():
    assert repr(nn.Dropout2d(0.25)) == "Dropout2d(p=0.25, inplace=False)"
    with pytest.raises(AttributeValueError, match="Dropout: p must be a probability"):
        nn.Dropout(-0.1)
