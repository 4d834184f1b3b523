"""Conversions between element types."""

from __future__ import annotations

import pytest

import graphc
from graphc.errors import DTypeError


@pytest.mark.parametrize(
    ("method", "dtype", "values"),
    [
        ("float", graphc.float32, [0.0, 1.5, -2.5]),
        ("double", graphc.float64, [0.0, 1.5, -2.5]),
        ("long", graphc.int64, [0, 1, -2]),
        ("int", graphc.int32, [0, 1, -2]),
        ("char", graphc.int8, [0, 1, -2]),
        ("bool", graphc.bool_, [False, True, True]),
    ],
)
def test_methods(method, dtype, values):
    converted = getattr(graphc.tensor([0.0, 1.5, -2.5]), method)()
    assert converted.dtype is dtype
    assert converted.tolist() == values


def test_byte_wraps_as_the_op_says():
    assert graphc.tensor([255, 256]).byte().tolist() == [255, 0]


def test_nothing_to_convert_gives_the_tensor_itself():
    x = graphc.ones(2)
    assert x.float() is x
    assert x.type_as(graphc.zeros(1)) is x
    assert x.to_dtype("f64").dtype is graphc.float64


def test_type_names_the_element_type():
    assert graphc.ones(1).type() == "graphc.float32"
    assert graphc.ones(1).type(graphc.int64).dtype is graphc.int64
    with pytest.raises(DTypeError, match="not supported"):
        graphc.ones(1).type("float16")


def test_gradients_come_back_in_the_type_of_the_operand():
    x = graphc.ones(2, requires_grad=True)
    (x.double() * 3).sum().backward()
    assert x.grad.dtype is graphc.float32
    assert x.grad.tolist() == [3, 3]
