"""Tensors by the old names of their types."""

from __future__ import annotations

import numpy as np
import pytest

import graphc


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *(("FloatTensor", "float32"), ("DoubleTensor", "float64"), ("LongTensor", "int64"), ("IntTensor", "int32")),
        *(("CharTensor", "int8"), ("ByteTensor", "uint8"), ("BoolTensor", "bool")),
    ],
)
def test_they_make_tensors_of_their_type_and_know_them(name, dtype):
    cls = getattr(graphc, name)
    for made in (cls([1, 0]), cls(np.array([1, 0])), cls(2, 3), cls(), cls(graphc.ones(2))):
        assert made.dtype is getattr(graphc, dtype if dtype != "bool" else "bool_") and isinstance(made, cls)
    assert cls(2, 3).shape == (2, 3) and cls().shape == (0,) and cls([1, 0]).tolist() == [1, 0]
    assert not isinstance(graphc.ones(1, dtype=graphc.int32 if name != "IntTensor" else graphc.int64), cls)
    assert not isinstance(3, cls)


def test_conversion_to_a_type_by_its_old_name():
    x = graphc.ones(2)
    assert x.type(graphc.LongTensor).dtype is x.type("torch.LongTensor").dtype is graphc.int64
    assert x.type(graphc.float64).dtype is graphc.float64 and x.type("torch.ByteTensor").dtype is graphc.uint8


def test_the_default_type_by_name():
    graphc.set_default_tensor_type("torch.DoubleTensor")
    assert graphc.ones(1).dtype is graphc.float64
    graphc.set_default_tensor_type(graphc.FloatTensor)
    assert graphc.ones(1).dtype is graphc.float32
