"""Norms around overlapping average pools, trained: a pool's gradient is a sum that the norm's sums over rows hold."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.nn import functional as F

NORMS = {
    "batch": lambda: nn.BatchNorm2d(4),
    "group": lambda: nn.GroupNorm(2, 4),
    "instance": lambda: nn.InstanceNorm2d(4, affine=True),
}
BEFORE = {
    "nothing": lambda: nn.Identity(),
    "a convolution": lambda: nn.Conv2d(4, 4, 3, padding=1),
    "a relu": lambda: nn.ReLU(),
}


def check_training(net: Any, x: Any) -> None:
    """A loss, the gradients, the buffers and two steps of ``net``, compiled, are those of eager mode."""
    target, reference = gc.randn(*copy.deepcopy(net)(x).shape), copy.deepcopy(net)
    step = gc.compile_step(net, F.mse_loss, gc.optim.SGD(net.parameters(), lr=0.1))
    optimizer = gc.optim.SGD(reference.parameters(), lr=0.1)
    for _ in range(2):
        found = step(x, target)
        optimizer.zero_grad()
        loss = F.mse_loss(reference(x), target)
        loss.backward()
        optimizer.step()
        np.testing.assert_allclose(found.numpy(), loss.detach().numpy(), rtol=1e-4)
    expected = reference.state_dict()
    for name, value in net.state_dict().items():
        np.testing.assert_allclose(value.numpy(), expected[name].numpy(), rtol=2e-3, atol=1e-5, err_msg=name)


@pytest.mark.sampled(50)
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("window", [(3, 2, 1), (3, 1, 1), (3, 2), (2, 1)], ids=str)
def test_a_norm_before_an_overlapping_average_pool_trains_as_in_eager_mode(norm: str, before: str, window: tuple):
    gc.manual_seed(0)
    net = nn.Sequential(BEFORE[before](), NORMS[norm](), nn.AvgPool2d(*window))
    check_training(net, gc.randn(2, 4, 7, 8))


@pytest.mark.parametrize("window", [(3, 2, 1), (3, 1, 1), (2, 1)], ids=str)
def test_a_norm_of_sequences_before_an_overlapping_average_pool_trains_as_in_eager_mode(window: tuple):
    gc.manual_seed(0)
    check_training(nn.Sequential(nn.BatchNorm1d(4), nn.AvgPool1d(*window)), gc.randn(3, 4, 9))


@pytest.mark.parametrize("behind", [lambda: nn.BatchNorm2d(4), lambda: nn.Conv2d(4, 2, 3)], ids=["norm", "convolution"])
def test_an_overlapping_average_pool_between_norms_and_convolutions_trains_as_in_eager_mode(behind: Any):
    gc.manual_seed(0)
    net = nn.Sequential(nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(3, 2, 1), behind())
    check_training(net, gc.randn(2, 4, 9, 8))
