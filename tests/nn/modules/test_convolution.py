"""Convolution layers: PyTorch's numbers, options, text, errors."""

from __future__ import annotations

import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError
from tests.nn.compare import floats, modules_agree

OPTIONS = [
    {},
    {"stride": 2, "padding": 1},
    {"dilation": 2, "bias": False},
    {"groups": 2, "padding": "same"},
    {"padding": 2, "padding_mode": "reflect"},
    {"padding": 1, "padding_mode": "replicate", "stride": 2},
    {"padding": 1, "padding_mode": "circular"},
    {"padding": "same", "padding_mode": "circular"},
    {"padding": "valid", "padding_mode": "circular"},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("lead", [(2,), ()])
def test_conv2d_as_torch(torch, options: dict, lead: tuple[int, ...]):
    args = (4, 6, (3, 2))
    modules_agree(nn.Conv2d(*args, **options), torch.nn.Conv2d(*args, **options), floats(*lead, 4, 8, 7))


@pytest.mark.parametrize("options", OPTIONS)
def test_conv1d_as_torch(torch, options: dict):
    modules_agree(nn.Conv1d(4, 6, 3, **options), torch.nn.Conv1d(4, 6, 3, **options), floats(2, 4, 9))


@pytest.mark.parametrize(
    "options",
    [{}, {"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 2, "dilation": 2}, {"bias": False, "stride": 3}],
)
def test_transposed_as_torch(torch, options: dict):
    theirs = torch.nn
    x = floats(2, 4, 5, 6)
    modules_agree(nn.ConvTranspose2d(4, 6, 3, **options), theirs.ConvTranspose2d(4, 6, 3, **options), x)
    modules_agree(nn.ConvTranspose1d(4, 6, 3, **options), theirs.ConvTranspose1d(4, 6, 3, **options), x[:, :, 0])


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
