"""Batch normalisation folded into layers, compared with the layers one after the other."""

from __future__ import annotations

from typing import Any

import pytest

import graphc
from graphc import nn
from graphc.errors import ArgumentError
from graphc.nn.utils import fuse_conv_bn_eval, fuse_linear_bn_eval


def trained(norm: Any, x: graphc.Tensor) -> Any:
    norm(x * 3 + 1)
    with graphc.no_grad():
        for p in norm.parameters():
            p.add_(graphc.rand(*p.shape))
    return norm.eval()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_layers(bias: bool, affine: bool):
    x = graphc.randn(4, 3, 6, 6)
    for layer, transpose in ((nn.Conv2d(3, 5, 3, bias=bias), False), (nn.ConvTranspose2d(3, 5, 3, bias=bias), True)):
        layer.eval()
        norm = trained(nn.BatchNorm2d(5, affine=affine), layer(x).detach())
        fused = fuse_conv_bn_eval(layer, norm, transpose)
        assert type(fused) is type(layer) and fused.weight is not layer.weight and fused.weight.requires_grad
        assert graphc.allclose(fused(x), norm(layer(x)), atol=1e-4)
    linear = nn.Linear(6, 5, bias=bias).eval()
    rows = graphc.randn(8, 6)
    norm = trained(nn.BatchNorm1d(5, affine=affine), linear(rows).detach())
    assert graphc.allclose(fuse_linear_bn_eval(linear, norm)(rows), norm(linear(rows)), atol=1e-4)


def test_wrong_uses():
    conv, norm = nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)
    with pytest.raises(ArgumentError, match="only layers in evaluation mode"):
        fuse_conv_bn_eval(conv.eval(), norm)
    with pytest.raises(ArgumentError, match="without running statistics"):
        fuse_conv_bn_eval(conv, nn.BatchNorm2d(2, track_running_stats=False).eval())
    with pytest.raises(ArgumentError, match="5 features with a batch normalisation of 2"):
        fuse_linear_bn_eval(nn.Linear(1, 5).eval(), nn.BatchNorm1d(2).eval())
