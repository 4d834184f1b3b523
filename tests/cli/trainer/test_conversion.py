"""Conversions: values stay, bytes become fractions, dimensions of size 1 and channels move, all else is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphc.base.sizes.named_dims import Dim
from graphc.cli.trainer.conversion import Scaling, conversion
from graphc.errors import ArgumentError, DTypeError, ShapeError
from graphc.files.manifest import TensorSpec

NUMBERS = np.arange(24)


def convert(array: np.ndarray, dtype: str, *shape: Any, scaling: Scaling | None = None) -> np.ndarray:
    converter = conversion(array, TensorSpec("x", dtype, (4, *shape)), scaling or Scaling(), "d.npz: x")
    return converter(array[:2])


def notes(array: np.ndarray, dtype: str, *shape: Any) -> list[str]:
    return list(conversion(array, TensorSpec("x", dtype, (4, *shape)), Scaling(), "d.npz: x").notes)


def test_what_fits_stays_as_it_is():
    array = NUMBERS.reshape(4, 6).astype(np.float32)
    assert np.array_equal(convert(array, "f32", 6), array[:2])
    assert notes(array, "f32", 6) == []


@pytest.mark.parametrize(
    ("source", "target_type"),
    [("float64", "f32"), ("int32", "f32"), ("int8", "i64"), ("uint8", "i64"), ("int64", "i32"), ("bool", "f32")],
)
def test_numbers_keep_their_values(source: str, target_type: str):
    array = (NUMBERS.reshape(4, 6) % 2).astype(source)
    result = convert(array, target_type, 6)
    assert result.dtype == {"f32": np.float32, "i64": np.int64, "i32": np.int32}[target_type]
    assert np.array_equal(result, array[:2].astype(float))
    assert notes(array, target_type, 6)[0].startswith(f"d.npz: x: {source} becomes ")


def test_bytes_become_fractions_where_floats_are_taken():
    array = NUMBERS.reshape(4, 6).astype(np.uint8)
    assert np.allclose(convert(array, "f32", 6), array[:2] / 255)
    assert "multiplied by 0.00392157" in notes(array, "f32", 6)[0]
    assert np.array_equal(convert(array, "u8", 6), array[:2])
    assert np.array_equal(convert(array, "f32", 6, scaling=Scaling(1.0)), array[:2])


def test_mean_and_spread_are_those_of_channels():
    array = NUMBERS.reshape(2, 2, 2, 3).astype(np.uint8)
    result = convert(array, "f32", 3, 2, 2, scaling=Scaling(1.0, (1.0, 2.0, 3.0), (2.0, 4.0, 8.0)))
    expected = (array.transpose(0, 3, 1, 2) - np.array([1, 2, 3.0])[:, None, None]) / np.array([2, 4, 8.0])[
        :, None, None
    ]
    assert np.allclose(result, expected)
    assert np.allclose(convert(array, "f32", 3, 2, 2, scaling=Scaling(1.0, (5.0,))), array.transpose(0, 3, 1, 2) - 5.0)
    with pytest.raises(ArgumentError, match="2 numbers for the 3 channels"):
        convert(array, "f32", 3, 2, 2, scaling=Scaling(1.0, (1.0, 2.0)))


@pytest.mark.parametrize(
    ("source", "target_shape"),
    [((4, 5), (20,)), ((1, 4, 5), (4, 5)), ((4, 5), (1, 4, 5)), ((20,), (4, 5)), ((1,), ()), ((), (1,))],
)
def test_samples_are_reshaped_where_no_order_is_in_doubt(source: tuple[int, ...], target_shape: tuple[int, ...]):
    array = np.arange(4 * int(np.prod(source)), dtype=np.float32).reshape(4, *source)
    assert np.array_equal(convert(array, "f32", *target_shape), array[:2].reshape(2, *target_shape))
    assert "become" in notes(array, "f32", *target_shape)[0]


def test_channels_move_to_the_front():
    array = np.arange(4 * 30, dtype=np.float32).reshape(4, 2, 5, 3)
    assert np.array_equal(convert(array, "f32", 3, 2, 5), array[:2].transpose(0, 3, 1, 2))


def test_other_shapes_are_refused():
    for target_shape in ((5, 4), (2, 10), (7,)):
        with pytest.raises(ShapeError, match=r"a sample of d.npz: x has the shape \[4, 5\]"):
            convert(np.zeros((4, 4, 5), np.float32), "f32", *target_shape)
    with pytest.raises(ShapeError, match="single number"):
        conversion(np.float32(3), TensorSpec("x", "f32", (4,)), Scaling(), "d")


def test_named_dimensions_take_their_range():
    time = Dim("time", 2, 9)
    assert convert(np.zeros((4, 7), np.float32), "f32", time).shape == (2, 7)
    with pytest.raises(ShapeError):
        convert(np.zeros((4, 10), np.float32), "f32", time)


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.array([[1.5]] * 4), "i64"),
        (np.array([[300]] * 4), "u8"),
        (np.array([[1 << 40]] * 4), "i32"),
        (np.array([[2]] * 4), "bool"),
        (np.array([["a"]] * 4), "f32"),
    ],
)
def test_types_that_would_lose_values_are_refused(array: np.ndarray, dtype: str):
    with pytest.raises(DTypeError):
        convert(array, dtype, 1)
