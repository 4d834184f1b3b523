"""Convolution layers: sizes of results, shapes of weights, text, errors."""

from __future__ import annotations

import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError
from tests.nn.compare import floats, modules_agree


def test_output_size_as_torch(torch):
    options = {"stride": 2, "padding": 1}
    ours, theirs = nn.ConvTranspose2d(4, 6, 3, **options), torch.nn.ConvTranspose2d(4, 6, 3, **options)
    modules_agree(ours, theirs, floats(2, 4, 5, 6), output_size=(10, 11))
    with pytest.raises(AttributeValueError, match=r"maps size \(5, 6\) to output_size \(20, 11\)"):
        ours(graphc.zeros(2, 4, 5, 6, dtype=graphc.float64), output_size=(20, 11))


def test_weights_have_the_documented_shapes():
    assert nn.Conv2d(4, 6, 3, groups=2).weight.shape == (6, 2, 3, 3)
    assert nn.ConvTranspose2d(4, 6, 3, groups=2).weight.shape == (4, 3, 3, 3)


def test_text():
    assert repr(nn.Conv2d(1, 10, 5)) == "Conv2d(1, 10, kernel_size=(5, 5), stride=(1, 1))"
    layer = nn.Conv2d(4, 8, 3, 2, 1, 2, groups=4, bias=False, padding_mode="reflect")
    assert repr(layer) == (
        "Conv2d(4, 8, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), dilation=(2, 2), groups=4, bias=False, "
        "padding_mode=reflect)"
    )
    transposed = nn.ConvTranspose1d(1, 2, 3, stride=2, output_padding=1)
    assert repr(transposed) == "ConvTranspose1d(1, 2, kernel_size=(3,), stride=(2,), output_padding=(1,))"


def test_errors():
    with pytest.raises(AttributeValueError, match="3 groups do not divide 4 input"):
        nn.Conv2d(4, 6, 3, groups=3)
    with pytest.raises(AttributeValueError, match="padding_mode 'mirror' is not known"):
        nn.Conv2d(4, 6, 3, padding_mode="mirror")
    with pytest.raises(AttributeValueError, match="padding_mode must be"):
        nn.ConvTranspose2d(4, 6, 3, padding_mode="reflect")
