"""Layers of volumes: shapes, names of parameters, compiled as eager."""

from __future__ import annotations

import numpy as np

import graphc
from graphc import nn
from tests.nn.compare import floats


def test_a_network_of_volumes_compiles():
    net = nn.Sequential(
        nn.Conv3d(2, 3, 2, padding="same"), nn.MaxPool3d(2), nn.Conv3d(3, 4, (1, 2, 2)), nn.AvgPool3d(2)
    )
    net.append(nn.AdaptiveAvgPool3d((1, None, 1)))
    net.append(nn.AdaptiveMaxPool3d(1))
    assert [n for n, _ in net.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    x = graphc.tensor(floats(2, 2, 4, 6, 6, dtype="float32"))
    y = net(x)
    assert y.shape == (2, 4, 1, 1, 1)
    np.testing.assert_allclose(graphc.compile(net)(x).detach().numpy(), y.detach().numpy(), rtol=1e-5, atol=1e-6)
