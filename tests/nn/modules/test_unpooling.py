"""Unpooling layers: a pool and its inverse, what they print, compiled as eager."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from tests.nn.compare import floats, tensor


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_pool_and_its_inverse(rank: int):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.pool = getattr(nn, f"MaxPool{rank}d")(2, return_indices=True)
            self.back = getattr(nn, f"MaxUnpool{rank}d")(2)

        def forward(self, x):
            return self.back(*self.pool(x))

    x = tensor(floats(1, 2, 4, 4, 4)[(slice(None),) * (2 + rank) + (0,) * (3 - rank)])
    net = Net()
    y = net(x)
    assert y.shape == x.shape and np.count_nonzero(y.numpy()) == x.numel() // 2**rank
    np.testing.assert_array_equal(y.numpy()[y.numpy() != 0], x.numpy()[y.numpy() != 0])
    np.testing.assert_array_equal(graphc.compile(net)(x).numpy(), y.numpy())
    window = (2,) * rank
    assert repr(net.back) == f"MaxUnpool{rank}d(kernel_size={window}, stride={window}, padding={(0,) * rank})"


@pytest.mark.parametrize("rank", [2, 3])
def test_pooling_at_random_places(rank: int):
    layer = getattr(nn, f"FractionalMaxPool{rank}d")(2, output_ratio=0.5, return_indices=True)
    x = graphc.randn(1, 2, *(6,) * rank)
    y, places = layer(x)
    assert y.shape == (1, 2, *(3,) * rank)
    assert graphc.equal(x.reshape(1, 2, -1).gather(2, places.reshape(1, 2, -1)).reshape(*y.shape), y)
