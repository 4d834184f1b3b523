"""Products of codes with prepared weights equal the integer arithmetic of their definition."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.nn.functional.byte_products import ByteMatrix, convolved

RANDOM = np.random.default_rng(0)
KINDS = ["uint8", "int8"]


def codes(dtype: str, *shape: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return RANDOM.integers(info.min, info.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("right", KINDS)
@pytest.mark.parametrize("left", KINDS)
@pytest.mark.parametrize("columns", [False, True])
def test_zero_points_of_rows_and_columns_are_subtracted(left: str, right: str, columns: bool):
    a, b = codes(left, 3, 21), codes(right, 21, 6)
    a_zero, b_zero = codes(left, 1)[0], codes(right, 6) if columns else codes(right, 1)[0]
    matrix = ByteMatrix.of(graphc.tensor(b), graphc.tensor(b_zero))
    result = matrix.product(graphc.tensor(a), graphc.tensor(a_zero))
    expected = (a.astype(np.int64) - a_zero) @ (b.astype(np.int64) - b_zero)
    assert result.dtype is graphc.int32 and result.tolist() == expected.tolist()


@pytest.mark.parametrize("right", KINDS)
@pytest.mark.parametrize("left", KINDS)
def test_codes_without_zero_points_are_numbers(left: str, right: str):
    a, b = codes(left, 2, 5), codes(right, 5, 4)
    result = ByteMatrix.of(graphc.tensor(b), None).product(graphc.tensor(a), None)
    assert result.tolist() == (a.astype(np.int64) @ b.astype(np.int64)).tolist()


@pytest.mark.parametrize("right", KINDS)
@pytest.mark.parametrize("left", KINDS)
@pytest.mark.parametrize("zeros", [False, True])
def test_padding_of_a_convolution_is_the_zero_point(left: str, right: str, zeros: bool):
    x, w = codes(left, 1, 3, 6), codes(right, 4, 3, 3)
    x_zero, w_zero = (codes(left, 1)[0], codes(right, 4)[:, None, None]) if zeros else (None, None)
    points = [None if p is None else graphc.tensor(p) for p in (x_zero, w_zero)]
    result = convolved(graphc.tensor(x), points[0], graphc.tensor(w), points[1], ((1, 2),), (2,), (1,))
    numbers = [np.subtract(c, 0 if z is None else z, dtype=np.int64) for c, z in ((x, x_zero), (w, w_zero))]
    image = np.pad(numbers[0], ((0, 0), (0, 0), (1, 2)))
    windows = np.lib.stride_tricks.sliding_window_view(image, 3, axis=2)[:, :, ::2]
    assert result.tolist() == np.einsum("nciy,ocy->noi", windows, numbers[1]).tolist()
