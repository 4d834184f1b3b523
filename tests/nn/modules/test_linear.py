"""Linear layers: initial values, element types, text."""

from __future__ import annotations

import math

import numpy as np

import graphc
from graphc import nn


def test_initial_values_fill_the_bounds():
    graphc.manual_seed(0)
    layer = nn.Linear(100, 200)
    bound = 1 / math.sqrt(100)
    for parameter in (layer.weight, layer.bias):
        values = parameter.detach().numpy()
        assert np.abs(values).max() <= bound
        assert np.abs(values).max() > 0.95 * bound
        assert abs(values.mean()) < 0.1 * bound


def test_identity_returns_its_input():
    x = graphc.ones(2)
    assert nn.Identity(3, unused=4)(x) is x


def test_element_type():
    layer = nn.Linear(2, 3, dtype=graphc.float64)
    assert layer.weight.dtype is graphc.float64 and layer.bias.dtype is graphc.float64


def test_text():
    assert repr(nn.Linear(2, 3, bias=False)) == "Linear(in_features=2, out_features=3, bias=False)"
    assert repr(nn.Bilinear(2, 3, 4)) == "Bilinear(in1_features=2, in2_features=3, out_features=4, bias=True)"
    assert repr(nn.Identity()) == "Identity()"
