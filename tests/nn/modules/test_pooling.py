"""Pooling layers against PyTorch, and their text."""

from __future__ import annotations

import pytest

from graphc import nn
from tests.nn.compare import floats, modules_agree

LAYERS = [
    ("MaxPool1d", (3,), {"stride": 2, "padding": 1}, (2, 3, 9)),
    ("MaxPool2d", (2,), {}, (2, 3, 8, 7)),
    ("MaxPool2d", ((3, 2),), {"stride": 2, "ceil_mode": True}, (3, 8, 7)),
    ("MaxPool2d", (2,), {"return_indices": True, "dilation": 2}, (2, 3, 8, 7)),
    ("AvgPool1d", (3,), {"padding": 1, "count_include_pad": False}, (2, 3, 9)),
    ("AvgPool2d", (2,), {}, (2, 3, 8, 7)),
    ("AvgPool2d", (3,), {"stride": 2, "padding": 1, "divisor_override": 4}, (2, 3, 8, 7)),
    ("AdaptiveAvgPool1d", (4,), {}, (2, 3, 9)),
    ("AdaptiveAvgPool2d", ((2, None),), {}, (2, 3, 8, 7)),
    ("AdaptiveMaxPool1d", (4,), {}, (2, 3, 9)),
    ("AdaptiveMaxPool2d", (3,), {}, (2, 3, 8, 7)),
]


@pytest.mark.parametrize(("name", "args", "options", "shape"), LAYERS)
def test_as_torch(torch, name: str, args: tuple, options: dict, shape: tuple[int, ...]):
    modules_agree(getattr(nn, name)(*args, **options), getattr(torch.nn, name)(*args, **options), floats(*shape))


def test_text():
    expected = "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)"
    assert repr(nn.MaxPool2d(2)) == expected
    assert repr(nn.AvgPool2d(3, 1)) == "AvgPool2d(kernel_size=3, stride=1, padding=0)"
    assert repr(nn.AdaptiveAvgPool2d((1, 1))) == "AdaptiveAvgPool2d(output_size=(1, 1))"
