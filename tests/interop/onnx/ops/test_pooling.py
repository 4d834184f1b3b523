"""Pooling of ONNX, against its evaluator, eagerly and compiled."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from tests.interop.onnx.one_node import check, floats, needs_runtime  # noqa: E402

IMAGE = floats(2, 4, 9, 8)
OPEN = {0: ("n", 4, "h", "w")}
WINDOW = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 0]}


@pytest.mark.parametrize("ceil_mode", [0, 1])
def test_maxima_come_with_their_places_in_the_flattened_input(ceil_mode):
    check("MaxPool", IMAGE, outputs=2, ceil_mode=ceil_mode, open_sizes=OPEN, **WINDOW)


@needs_runtime
def test_places_may_count_by_columns():
    check("MaxPool", IMAGE, outputs=2, storage_order=1, runtime=True, open_sizes=OPEN, **WINDOW)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_bytes_have_maxima(dtype):
    check("MaxPool", (IMAGE * 30).astype(dtype), kernel_shape=[2, 2], dilations=[2, 2])


def test_padding_may_be_as_wide_as_the_window():
    check("MaxPool", IMAGE, kernel_shape=[2, 2], pads=[2, 2, 2, 2], expected=[_padded_maxima(IMAGE)])


def _padded_maxima(x: np.ndarray) -> np.ndarray:
    wide = np.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2)), constant_values=np.finfo(np.float32).min)
    wide[wide == np.finfo(np.float32).min] = -np.inf
    return np.max([wide[:, :, i : i + 12, j : j + 11] for i in (0, 1) for j in (0, 1)], axis=0)


@pytest.mark.parametrize("ceil_mode", [0, 1])
@pytest.mark.parametrize("count_include_pad", [0, 1])
@pytest.mark.parametrize("dilations", [[1, 1], [2, 1]])
def test_means_count_padding_where_they_are_told_to(ceil_mode, count_include_pad, dilations):
    options = {"ceil_mode": ceil_mode, "count_include_pad": count_include_pad, "dilations": dilations}
    check("AveragePool", IMAGE, open_sizes=OPEN, **WINDOW, **options)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_roots_of_sums_of_powers(p):
    check("LpPool", IMAGE, p=p, tolerance=1e-4, **WINDOW)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
def test_whole_images_are_pooled(op):
    check(op, IMAGE, open_sizes=OPEN)


def test_whole_images_have_norms():
    expected = np.sqrt((IMAGE**2).sum((2, 3), keepdims=True))
    check("GlobalLpPool", IMAGE, expected=[expected], open_sizes=OPEN, tolerance=1e-4)


def test_maxima_are_put_back_to_their_places():
    places = np.array([[[[5, 7], [13, 15]]]], np.int64)
    check("MaxUnpool", floats(1, 1, 2, 2), places, kernel_shape=[2, 2], strides=[2, 2])


@needs_runtime
@pytest.mark.parametrize("size", [(1, 1, 4, 5), (1, 1, 5, 5), (1, 1, 4, 4), (1, 1, 2, 9)])
def test_places_count_in_the_shape_of_the_result(size):
    places = np.array([[[[0, 7], [13, 15]]]], np.int64)
    arrays = (floats(1, 1, 2, 2), places, np.array(size, np.int64))
    options = {"kernel_shape": [2, 2], "strides": [2, 2], "constants": (2,), "runtime": True}
    result, *_ = check("MaxUnpool", *arrays, **options)
    np.testing.assert_array_equal(result.reshape(-1)[places.reshape(-1)], arrays[0].reshape(-1))
