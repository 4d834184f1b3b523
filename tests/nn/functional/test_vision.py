"""Padding, resizing and rearranging: types, inverses, errors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc.errors import AttributeValueError, ShapeError
from tests.nn.compare import agree, floats, tensor


def test_padding_keeps_the_type():
    assert F.pad(graphc.tensor([1, 2]), (1, 1)).tolist() == [0, 1, 2, 0]
    assert F.pad(graphc.tensor([True]), (1, 0)).tolist() == [False, True]


@pytest.mark.parametrize(
    ("pad", "options", "error", "message"),
    [
        ((1,), {}, AttributeValueError, "does not fit"),
        ((1, 1, 1, 1, 1, 1), {}, AttributeValueError, "does not fit an input with 2 dimensions"),
        ((1, 1), {"mode": "mirror"}, AttributeValueError, "mode 'mirror' is not known"),
        ((1, 1), {"mode": "reflect", "value": 2.0}, AttributeValueError, "takes no value"),
        ((3, 0), {"mode": "reflect"}, ShapeError, "too large for a dimension of size 3"),
        ((4, 0), {"mode": "circular"}, ShapeError, "too large"),
    ],
)
def test_padding_errors(pad: tuple[int, ...], options: dict, error: type, message: str):
    with pytest.raises(error, match=message):
        F.pad(tensor(floats(2, 3)), pad, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either size or scale_factor"),
        ({"size": 3, "scale_factor": 2}, "either size or scale_factor"),
        ({"size": 3, "align_corners": True}, "does not take align_corners"),
        ({"size": 3, "mode": "linear"}, "does not fit 2 spatial dimensions"),
        ({"scale_factor": (1, 2, 3)}, "scale_factor"),
    ],
)
def test_interpolate_errors(options: dict, message: str):
    with pytest.raises(AttributeValueError, match=message):
        F.interpolate(tensor(floats(1, 1, 4, 4)), **options)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "bicubic", "area"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_scale_that_keeps_or_doubles_a_size_counts_as_in_torch(torch, rank, mode):
    if mode == "bicubic" and rank != 2:
        pytest.skip("images only")
    mode = {"linear": {1: "linear", 2: "bilinear", 3: "trilinear"}[rank]}.get(mode, mode)
    for extent, factor in ((3, 1.3), (5, 2.1), (4, 1.2), (4, 2.2), (4, 1.5), (90, 1.001), (2, 0.4)):
        if extent * factor < 1 and mode != "area":
            continue  # PyTorch refuses empty results.
        x = floats(1, 2, extent, *(2,) * (rank - 1)).astype("float32")
        options = {"scale_factor": (factor, *(1.5,) * (rank - 1)), "mode": mode}
        expected = torch.nn.functional.interpolate(torch.tensor(x), **options).numpy()
        for function in (F.interpolate, graphc.compile(F.interpolate)):
            np.testing.assert_allclose(function(graphc.tensor(x), **options).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_large_images_and_images_of_bytes_as_torch(torch):
    x = floats(1, 1, 3, 100).astype("float32")
    for given, options in (
        (x, {"scale_factor": (1.3, 1.5)}),
        ((x * 20 + 100).astype("uint8"), {"scale_factor": (1.3, 1.0), "mode": "bicubic"}),
    ):
        expected = torch.nn.functional.interpolate(torch.tensor(given), **options).numpy()
        np.testing.assert_array_equal(F.interpolate(graphc.tensor(given), **options).numpy(), expected)


def test_unshuffle_undoes_shuffle():
    x = floats(2, 18, 3, 4)
    np.testing.assert_array_equal(F.pixel_unshuffle(F.pixel_shuffle(tensor(x), 3), 3).numpy(), x)


def test_shuffle_errors():
    with pytest.raises(ShapeError, match="factor 2 does not fit 6 channels"):
        F.pixel_shuffle(tensor(floats(1, 6, 2, 2)), 2)
    with pytest.raises(ShapeError, match="does not divide 3 x 4"):
        F.pixel_unshuffle(tensor(floats(1, 6, 3, 4)), 2)
    with pytest.raises(ShapeError, match="4 groups do not divide 6"):
        F.channel_shuffle(tensor(floats(1, 6, 3, 4)), 4)


OPTIONS = [
    {"kernel_size": 2},
    {"kernel_size": (2, 3), "stride": 2},
    {"kernel_size": 2, "dilation": (1, 2), "padding": 1},
    {"kernel_size": (3, 1), "padding": (2, 0), "stride": (1, 3)},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("lead", [(2, 3), (3,)])
def test_unfold_as_torch(torch, options: dict, lead: tuple[int, ...]):
    agree(F.unfold, torch.nn.functional.unfold, floats(*lead, 5, 6), **options)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("lead", [(2,), ()])
def test_fold_as_torch(torch, options: dict, lead: tuple[int, ...]):
    columns = F.unfold(graphc.zeros(1, 3, 5, 6), **options).shape[1:]
    theirs = torch.nn.functional.fold
    agree(F.fold, theirs, floats(*lead, *columns), output_size=(5, 6), **options)


def test_columns_are_windows():
    image = floats(1, 2, 4, 5)
    columns = F.unfold(tensor(image), (2, 3)).numpy()
    wanted = [image[0, :, r : r + 2, c : c + 3].reshape(-1) for r in range(3) for c in range(3)]
    np.testing.assert_array_equal(columns[0].T, wanted)


@pytest.mark.parametrize("options", OPTIONS)
def test_fold_is_the_transpose_of_unfold(options: dict):
    image = floats(2, 3, 5, 6)
    columns = F.unfold(tensor(image), **options).numpy()
    weights = floats(*columns.shape, seed=1)
    folded = F.fold(tensor(weights), (5, 6), **options).numpy()
    np.testing.assert_allclose((columns * weights).sum(), (image * folded).sum(), rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.unfold(graphc.zeros(1, 1, 3, 3), 0), AttributeValueError, "must be positive"),
        (lambda: F.unfold(graphc.zeros(1, 1, 3, 3), 2, padding=-1), AttributeValueError, "0 or more"),
        (lambda: F.unfold(graphc.zeros(1, 1, 3, 3), 4), ShapeError, "does not fit an image"),
        (lambda: F.fold(graphc.zeros(1, 5, 4), (3, 3), 2), ShapeError, "windows of 4 elements"),
        (lambda: F.fold(graphc.zeros(1, 4, 5), (3, 3), 2), ShapeError, "4 windows"),
    ],
)
def test_what_does_not_fit(call, error: type[Exception], text: str):
    with pytest.raises(error, match=text):
        call()
