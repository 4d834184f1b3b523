"""Conversions between element types."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import DTypeError, GradientError


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
        graphc.ones(1).type("float8")


def test_gradients_come_back_in_the_type_of_the_operand():
    x = graphc.ones(2, requires_grad=True)
    (x.double() * 3).sum().backward()
    assert x.grad.dtype is graphc.float32
    assert x.grad.tolist() == [3, 3]


def test_memory_is_shared_with_other_libraries():
    x = graphc.tensor([1.0, 2.0])
    array = np.from_dlpack(x)
    x.add_(1)
    assert array.tolist() == [2, 3]
    assert x.__dlpack_device__() == (1, 0) and x.get_device() == -1
    with pytest.raises(GradientError):
        np.from_dlpack(x.requires_grad_())


def test_what_a_tensor_is_not():
    x = graphc.tensor([1, 2])
    assert not x.is_cuda and x.is_cpu and not x.is_complex() and x.is_signed()
    assert not graphc.tensor([True]).is_signed() and graphc.tensor([1j]).is_signed()
    assert x.ndimension() == 1 and x.is_same_size(graphc.ones(2)) and not x.is_same_size(graphc.ones(3))


def test_a_capsule_is_made_as_the_standard_asks_for_it():
    x = graphc.ones(3)
    x.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=True)
    assert "dltensor" in repr(x.__dlpack__(max_version=(1, 0)))
    shared, copied = np.from_dlpack(x, copy=False), np.from_dlpack(x, copy=True)
    x[0] = 5.0
    assert (shared[0], copied[0]) == (5.0, 1.0)


def test_a_tensor_names_the_functions_of_the_standard():
    assert graphc.ones(1).__array_namespace__(api_version="2025.12") is graphc.array_api


def test_functions_of_numpy_keep_the_gradient():
    x = graphc.tensor([1.0, 4.0], requires_grad=True)
    np.sum(np.sqrt(x)).backward()
    assert x.grad.tolist() == [0.5, 0.25]
    with pytest.raises(GradientError, match="lose the gradient"):
        np.median(x)
