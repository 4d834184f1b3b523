"""Layers that pad, resize and rearrange, against PyTorch."""

from __future__ import annotations

import pytest

from graphc import nn
from tests.nn.compare import floats, modules_agree

LAYERS = [
    ("ZeroPad1d", (2,), (2, 3, 5)),
    ("ZeroPad2d", ((1, 2, 3, 0),), (2, 3, 5, 6)),
    ("ConstantPad1d", ((2, 1), 1.5), (2, 3, 5)),
    ("ConstantPad2d", (2, 1.5), (2, 3, 5, 6)),
    ("ReflectionPad1d", ((2, 1),), (2, 3, 5)),
    ("ReflectionPad2d", (2,), (2, 3, 5, 6)),
    ("ReplicationPad1d", (2,), (2, 3, 5)),
    ("ReplicationPad2d", ((1, 2, 3, 0),), (2, 3, 5, 6)),
    ("CircularPad1d", (2,), (2, 3, 5)),
    ("CircularPad2d", ((1, 2, 3, 0),), (2, 3, 5, 6)),
    ("Upsample", (None, 2), (2, 3, 5, 6)),
    ("Upsample", ((7, 9), None, "bilinear"), (2, 3, 5, 6)),
    ("Upsample", (None, 2, "linear", True), (2, 3, 5)),
    ("UpsamplingNearest2d", (9,), (2, 3, 5, 6)),
    ("UpsamplingBilinear2d", (None, 2), (2, 3, 5, 6)),
    ("PixelShuffle", (2,), (2, 8, 3, 4)),
    ("PixelUnshuffle", (2,), (2, 3, 6, 4)),
    ("ChannelShuffle", (2,), (2, 6, 3, 4)),
]


@pytest.mark.parametrize(("name", "args", "shape"), LAYERS)
def test_as_torch(torch, name: str, args: tuple, shape: tuple[int, ...]):
    modules_agree(getattr(nn, name)(*args), getattr(torch.nn, name)(*args), floats(*shape))


def test_text():
    assert repr(nn.ZeroPad2d(1)) == "ZeroPad2d((1, 1, 1, 1))"
    assert repr(nn.ConstantPad1d(2, 0.5)) == "ConstantPad1d(padding=(2, 2), value=0.5)"
    assert repr(nn.Upsample(scale_factor=2)) == "Upsample(scale_factor=2, mode='nearest')"
    assert repr(nn.Upsample(size=(2, 3), mode="bilinear")) == "Upsample(size=(2, 3), mode='bilinear')"
    assert repr(nn.PixelShuffle(3)) == "PixelShuffle(upscale_factor=3)"
    assert repr(nn.PixelUnshuffle(3)) == "PixelUnshuffle(downscale_factor=3)"
    assert repr(nn.ChannelShuffle(2)) == "ChannelShuffle(groups=2)"
