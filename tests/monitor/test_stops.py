"""Stops of debug: the first number that is not finite, and modules by name."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError, NonFiniteError, StoppedError
from graphc.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.block = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.last = nn.Linear(8, 2)

    def forward(self, x):
        return self.last(self.block(gc.tanh(self.first(x))))


def test_the_gradient_that_is_infinite_is_named():
    scale = gc.zeros(2, requires_grad=True)
    with pytest.raises(NonFiniteError, match="made by the gradient of sqrt, backward") as caught, gc.debug(stop="nan"):
        (gc.ones(2) * scale.sqrt()).sum().backward()
    assert "operands of sqrt: f32[2] 0..0" in caught.value.where and "scale.sqrt()" in caught.value.origin
    assert caught.value.stop.event.op == "sqrt" and not np.isfinite(caught.value.stop.outputs[0].numpy()).any()


def test_infinities_on_the_way_to_finite_numbers_stop_nothing():
    with gc.debug(stop="nan"):
        F.binary_cross_entropy(gc.tensor([0.0, 1.0]), gc.tensor([0.0, 1.0]))
        F.max_pool2d(gc.ones(1, 1, 4, 4), 3, padding=1)
        gc.softmax(gc.zeros(2, 2).masked_fill(gc.tensor([[True, False], [False, True]]), float("-inf")), -1)
    with pytest.raises(NonFiniteError, match="made by log"), gc.debug(stop="nan"):
        loss = F.nll_loss(gc.zeros(1, 2).log(), gc.tensor([0]))
        assert loss is not None


def test_what_is_infinite_when_it_leaves_a_function_is_found():
    with pytest.raises(NonFiniteError) as caught, gc.debug(stop="nan"):
        kept = F.mse_loss(gc.full((2,), 3e38), gc.zeros(2))
    assert "made by " in str(caught.value) and kept is not None


def test_patterns_of_stops_and_those_that_were_not_met():
    net = Net()
    with pytest.raises(StoppedError, match=r"block\.0 \(Linear\) is called") as caught, gc.debug(stop="block.*"):
        net(gc.ones(3, 4))
    assert caught.value.stop.module is net.block[0]
    with pytest.raises(StoppedError, match=r"block\.1"), gc.debug(net, stop=("nan", "ReLU")):
        gc.compile(net)(gc.ones(3, 4))
    with pytest.warns(UserWarning, match="no module 'Conv2d' was called"), gc.debug(stop="Conv2d"):
        net(gc.ones(3, 4))


def test_other_forms_of_stops():
    net = Net()
    with pytest.raises(NonFiniteError, match="made by log"), gc.debug(stop_at_nan=True):
        gc.zeros(2).log()
    with gc.no_grad(), pytest.raises(StoppedError, match=r"block.1 .ReLU. is called"), gc.debug(net, stop_at="block.1"):
        net(gc.ones(3, 4))


@pytest.mark.parametrize("wrong", [{"stop": True}, {"stop_at": 3}, {"modules": [1]}, {"names": {"add": 1}}])
def test_patterns_are_texts(wrong):
    (name,) = wrong
    with pytest.raises(ArgumentError, match=f"debug: {name} must be patterns, got"):
        gc.debug(**wrong)
