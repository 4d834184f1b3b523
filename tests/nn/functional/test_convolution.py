"""Convolutions and transposed convolutions: padding, sizes, errors."""

from __future__ import annotations

import pytest

import graphc
import graphc.nn.functional as F
from graphc.errors import AttributeValueError, ShapeError
from tests.nn.compare import agree, floats, tensor

NOTHING = [
    ((2, 1, 4, 1), (1, 2, 1, 3), {"padding": 2, "dilation": (1, 3)}),
    ((2, 2, 1, 1), (2, 1, 2, 2), {"padding": 1, "stride": 2, "dilation": (2, 1)}),
    (
        (2, 4, 4, 1),
        (4, 1, 3, 2),
        {"padding": (1, 3), "stride": (2, 3), "dilation": 3, "groups": 2, "output_padding": (0, 2)},
    ),
]
"""Transposed convolutions of which padding leaves nothing."""


@pytest.mark.parametrize(("x", "w", "options"), NOTHING)
def test_conv_transpose2d_of_which_padding_leaves_nothing(torch, x: tuple[int, ...], w: tuple[int, ...], options: dict):
    # PyTorch refuses some of them in f64, and takes them in f32.
    arrays = floats(*x, dtype="float32"), floats(*w, dtype="float32")
    for function in (F.conv_transpose2d, graphc.compile(F.conv_transpose2d)):
        agree(function, torch.nn.functional.conv_transpose2d, *arrays, **options)


def test_same_padding_keeps_the_size():
    x = tensor(floats(1, 1, 6, 9))
    for kernel in (1, 2, 3, 4, 5):
        assert F.conv2d(x, tensor(floats(1, 1, kernel, kernel)), padding="same").shape == (1, 1, 6, 9)


@pytest.mark.parametrize(
    ("x", "w", "options", "error", "message"),
    [
        ((2, 3, 8), (4, 3, 3), {}, ShapeError, "the weight has 3 dimensions"),
        ((2, 3), (4, 3, 3, 3), {}, ShapeError, "the input has 2 dimensions"),
        ((2, 3, 8, 8), (4, 3, 3, 3), {"stride": (1, 1, 1)}, AttributeValueError, "stride must be one number or 2"),
        ((2, 3, 8, 8), (4, 3, 3, 3), {"padding": "full"}, AttributeValueError, "neither a number"),
        ((2, 3, 8, 8), (4, 3, 3, 3), {"padding": "same", "stride": 2}, AttributeValueError, "needs stride 1"),
        ((2, 3, 8, 8), (4, 3, 9, 3), {}, ShapeError, "does not fit"),
    ],
)
def test_conv2d_errors(x: tuple[int, ...], w: tuple[int, ...], options: dict, error: type, message: str):
    with pytest.raises(error, match=message):
        F.conv2d(tensor(floats(*x)), tensor(floats(*w)), **options)


def test_bias_is_one_number_per_channel():
    with pytest.raises(ShapeError, match=r"the bias has shape \[3\], expected \[4\]"):
        F.conv2d(tensor(floats(1, 3, 5, 5)), tensor(floats(4, 3, 3, 3)), tensor(floats(3)))


def test_transposed_errors():
    x, w = tensor(floats(1, 3, 5, 5)), tensor(floats(4, 3, 3, 3))
    with pytest.raises(ShapeError, match="3 channels, the weight expects 4"):
        F.conv_transpose2d(x, w)
    with pytest.raises(AttributeValueError, match="output_padding 1 must be smaller"):
        F.conv_transpose2d(x, tensor(floats(3, 4, 3, 3)), output_padding=1)
    with pytest.raises(ShapeError, match=r"padding \(3, 4\) leaves an output of size \(1, -1\)"):
        F.conv_transpose2d(x, tensor(floats(3, 4, 3, 3)), padding=(3, 4))
