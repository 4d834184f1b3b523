"""compare: models and their compiled forms, layer by layer."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError, ShapeError


def network():
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 2))


def test_compiled_models_agree_in_every_layer():
    net = network()
    before = net[1].running_mean.numpy().copy()
    found = gc.compare(net, gc.compile(net), gc.randn(6, 4))
    assert found and found.first is None and [layer.path for layer in found.layers] == ["0", "1", "2", "3", "4", ""]
    assert "all layers agree" in str(found) and max(layer.relative for layer in found.layers) < 1e-5
    np.testing.assert_array_equal(net[1].running_mean.numpy(), before)
    assert not net[0]._forward_hooks


def test_the_first_layer_that_differs_is_named():
    net = network().eval()
    other = copy.deepcopy(net)
    with gc.no_grad():
        other[4].weight[0, 0] += 1
    found = gc.compare(net, gc.compile(other), gc.randn(6, 4))
    assert not found and found.first is not None and found.first.path == "4"
    assert "4 (Linear)" in str(found) and "<- differs" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["first"] == "4"
    assert gc.compare(net, other, gc.randn(6, 4), tolerance=1e6)


def test_modules_that_are_called_twice_and_whole_numbers():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            return self.layer(self.layer(x)).argmax(1)

    net = Twice()
    found = gc.compare(net, gc.compile(net), gc.randn(2, 3))
    assert [layer.path for layer in found.layers] == ["layer", "layer call 2", ""] and found


def test_a_nan_on_one_side_differs():
    net = network().eval()
    other = copy.deepcopy(net)
    with gc.no_grad():
        other[0].bias[0] = float("nan")
    first = gc.compare(net, other, gc.randn(2, 4)).first
    assert first is not None and first.path == "0" and first.absolute == np.inf


def test_wrong_calls():
    with pytest.raises(ArgumentError, match="other is a function"):
        gc.compare(network(), lambda x: x, gc.ones(1, 4))
    with pytest.raises(ShapeError, match=r"returns \[1, 2\] and \[1, 3\]"):
        gc.compare(nn.Sequential(nn.Linear(4, 2)), nn.Sequential(nn.Linear(4, 3)), gc.ones(1, 4))
