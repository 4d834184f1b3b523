"""Tensor types and strides."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import bool_, float32, float64
from graphc.ir.types import TensorType, row_major_strides


def test_sizes():
    type = TensorType(float64, (2, 3, 4))
    assert (type.rank, type.size, type.nbytes, str(type)) == (3, 24, 192, "f64[2,3,4]")
    assert (TensorType(bool_).size, str(TensorType(bool_)), TensorType(float32, (0, 5)).nbytes) == (1, "bool[]", 0)


def test_equality_is_by_content():
    assert TensorType(float32, (2,)) == TensorType(float32, (2,)) != TensorType(float64, (2,))
    assert len({TensorType(float32, (2,)), TensorType(float32, (2,)), TensorType(float32, (2, 1))}) == 2


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (4, 1, 3, 2), (3, 7, 1)])
def test_strides_are_those_of_numpy(shape: tuple[int, ...]):
    assert row_major_strides(shape) == tuple(s // 8 for s in np.zeros(shape).strides)
