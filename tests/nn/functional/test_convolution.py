"""Convolutions and transposed convolutions against PyTorch."""

from __future__ import annotations

import pytest

import graphc
import graphc.nn.functional as F
from graphc.errors import AttributeValueError, ShapeError
from tests.nn.compare import agree, floats, tensor

TWO_D = [
    ((2, 3, 7, 8), (4, 3, 3, 3), {}),
    ((2, 3, 7, 8), (4, 3, 3, 2), {"stride": 2}),
    ((1, 4, 9, 8), (6, 2, 3, 3), {"padding": 1, "groups": 2}),
    ((2, 4, 9, 8), (4, 1, 3, 3), {"padding": (2, 1), "groups": 4, "stride": (2, 3)}),
    ((1, 2, 11, 9), (3, 2, 3, 2), {"dilation": (2, 3), "padding": 2}),
    ((2, 2, 6, 7), (3, 2, 4, 3), {"padding": "same"}),
    ((2, 2, 6, 7), (3, 2, 2, 3), {"padding": "same", "dilation": 2}),
    ((2, 2, 6, 7), (3, 2, 4, 3), {"padding": "valid"}),
    ((3, 7, 8), (4, 3, 3, 3), {}),
    ((2, 8, 1, 1), (4, 8, 1, 1), {}),
]


@pytest.mark.parametrize(("x", "w", "options"), TWO_D)
@pytest.mark.parametrize("bias", [True, False])
def test_conv2d_as_torch(torch, x: tuple[int, ...], w: tuple[int, ...], options: dict, bias: bool):
    arrays = [floats(*x), floats(*w, seed=1), *([floats(w[0], seed=2)] if bias else [])]
    agree(F.conv2d, torch.nn.functional.conv2d, *arrays, **options)


@pytest.mark.parametrize(
    ("x", "w", "options"),
    [
        ((2, 3, 12), (4, 3, 3), {}),
        ((2, 4, 12), (4, 2, 3), {"stride": 2, "padding": 2, "groups": 2}),
        ((4, 12), (4, 4, 3), {"dilation": 2}),
        ((2, 3, 10), (4, 3, 4), {"padding": "same"}),
    ],
)
def test_conv1d_as_torch(torch, x: tuple[int, ...], w: tuple[int, ...], options: dict):
    agree(F.conv1d, torch.nn.functional.conv1d, floats(*x), floats(*w, seed=1), floats(w[0], seed=2), **options)


@pytest.mark.parametrize(
    ("x", "w", "out", "options"),
    [
        ((2, 3, 4, 5), (3, 4, 3, 3), 4, {}),
        ((2, 3, 4, 5), (3, 4, 3, 2), 4, {"stride": 2, "padding": 1}),
        ((2, 3, 4, 5), (3, 4, 3, 3), 4, {"stride": (3, 2), "output_padding": (2, 1), "padding": (1, 0)}),
        ((2, 4, 4, 5), (4, 3, 2, 3), 6, {"groups": 2, "dilation": 2, "stride": 2}),
        ((3, 4, 5), (3, 4, 3, 3), 4, {}),
    ],
)
def test_conv_transpose2d_as_torch(torch, x: tuple[int, ...], w: tuple[int, ...], out: int, options: dict):
    agree(
        F.conv_transpose2d,
        torch.nn.functional.conv_transpose2d,
        floats(*x),
        floats(*w, seed=1),
        floats(out, seed=2),
        **options,
    )


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


def test_conv_transpose1d_as_torch(torch):
    arrays = (floats(2, 4, 7), floats(4, 3, 4, seed=1), floats(6, seed=2))
    options = {"stride": 3, "padding": 1, "output_padding": 1, "groups": 2}
    agree(F.conv_transpose1d, torch.nn.functional.conv_transpose1d, *arrays, **options)


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
