"""Pooling against PyTorch, with every rounding and counting rule."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc.errors import AttributeValueError, ShapeError
from tests.nn.compare import agree, floats, tensor

SHARED = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2},
    {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0)},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    {"kernel_size": 2, "stride": 3, "ceil_mode": True},
    {"kernel_size": 3, "stride": 3, "padding": 1, "ceil_mode": True},
    {"kernel_size": 4, "stride": 3, "padding": 2, "ceil_mode": True},
]


@pytest.mark.parametrize("options", SHARED)
@pytest.mark.parametrize("shape", [(2, 3, 7, 8), (1, 2, 10, 9), (3, 6, 7)])
def test_max_pool2d_as_torch(torch, options: dict, shape: tuple[int, ...]):
    agree(F.max_pool2d, torch.nn.functional.max_pool2d, floats(*shape), **options)


@pytest.mark.parametrize("options", SHARED)
@pytest.mark.parametrize("count_include_pad", [True, False])
def test_avg_pool2d_as_torch(torch, options: dict, count_include_pad: bool):
    options = options | {"count_include_pad": count_include_pad}
    agree(F.avg_pool2d, torch.nn.functional.avg_pool2d, floats(2, 3, 7, 8), **options)


def test_equal_windows_are_means():
    x = floats(1, 2, 4, 6)
    expected = x.reshape(1, 2, 2, 2, 3, 2).mean((3, 5))
    np.testing.assert_allclose(F.adaptive_avg_pool2d(tensor(x), (2, 3)).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: F.max_pool2d(x, 3, padding=2), AttributeValueError, "half of the window"),
        (lambda x: F.max_pool2d(x, (2, 2, 2)), AttributeValueError, "kernel_size must be one number or 2"),
        (lambda x: F.avg_pool2d(x, 2, divisor_override=0), AttributeValueError, "divisor_override is 0"),
        (lambda x: F.adaptive_avg_pool2d(x, (1, 2, 3)), AttributeValueError, "output_size must be one number or 2"),
        (lambda x: F.adaptive_max_pool2d(x, -1), AttributeValueError, "is negative"),
        (lambda x: F.max_pool2d(x, 9), ShapeError, "does not fit"),
        (lambda x: F.max_pool1d(x, 2), ShapeError, "max_pool1d: the input has 4 dimensions"),
    ],
)
def test_errors(call: object, error: type, message: str):
    with pytest.raises(error, match=message):
        call(tensor(floats(1, 2, 5, 5)))


def test_the_odd_root_of_a_negative_sum_is_nan():
    x = graphc.tensor([[[-1.0, -2.0, 3.0, 1.0, 0.0, 0.0]]], requires_grad=True)
    result = F.lp_pool1d(x, 3.0, 2)
    assert np.isnan(result[0, 0, 0].item()) and result[0, 0, 1:].tolist() == pytest.approx([28 ** (1 / 3), 0.0])
    result[0, 0, 2].backward()
    assert x.grad[0, 0, 2:].tolist() == [0.0] * 4
