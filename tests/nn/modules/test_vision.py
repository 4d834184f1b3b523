"""The text of layers that pad, resize and rearrange."""

from __future__ import annotations

from graphc import nn
from tests.nn.compare import floats, modules_agree


def test_text():
    assert repr(nn.ZeroPad2d(1)) == "ZeroPad2d((1, 1, 1, 1))"
    assert repr(nn.ConstantPad1d(2, 0.5)) == "ConstantPad1d(padding=(2, 2), value=0.5)"
    assert repr(nn.Upsample(scale_factor=2)) == "Upsample(scale_factor=2, mode='nearest')"
    assert repr(nn.Upsample(size=(2, 3), mode="bilinear")) == "Upsample(size=(2, 3), mode='bilinear')"
    assert repr(nn.PixelShuffle(3)) == "PixelShuffle(upscale_factor=3)"
    assert repr(nn.PixelUnshuffle(3)) == "PixelUnshuffle(downscale_factor=3)"
    assert repr(nn.ChannelShuffle(2)) == "ChannelShuffle(groups=2)"


def test_as_torch(torch):
    options = {"kernel_size": (2, 3), "dilation": 1, "padding": 1, "stride": 2}
    modules_agree(nn.Unfold(**options), torch.nn.Unfold(**options), floats(2, 3, 5, 6))
    modules_agree(nn.Fold((5, 6), **options), torch.nn.Fold((5, 6), **options), floats(2, 18, 9))


def test_text_folding():
    assert repr(nn.Unfold(2)) == "Unfold(kernel_size=2, dilation=1, padding=0, stride=1)"
    assert repr(nn.Fold((4, 4), 2, stride=2)) == (
        "Fold(output_size=(4, 4), kernel_size=2, dilation=1, padding=0, stride=2)"
    )
