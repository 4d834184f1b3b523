"""Unpooling and pooling at random places, compared with PyTorch; compiled as eager."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
from graphc.errors import ArgumentError, AttributeValueError, ShapeError
from graphc.nn import functional as F
from tests.nn.compare import agree, floats, positive, tensor

SHAPES = {1: (2, 3, 8), 2: (2, 3, 6, 8), 3: (2, 2, 4, 6, 5)}


def there_and_back(library: Any, rank: int, output_size: Any = None) -> Any:
    pool = getattr(library.nn.functional, f"max_pool{rank}d")
    back = getattr(library.nn.functional, f"max_unpool{rank}d")

    def run(x: Any) -> Any:
        y, places = pool(x, 2, return_indices=True)
        return y, places, back(y * y, places, 2, output_size=output_size)

    return run


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("batch", [True, False])
def test_unpooling_as_torch(torch, rank: int, batch: bool):
    x = floats(*SHAPES[rank])
    x = x if batch else x[0]
    size = x.shape[-rank:]
    agree(there_and_back(graphc, rank, size), there_and_back(torch, rank, size), x)


@pytest.mark.parametrize(
    "options", [{"kernel_size": 3, "stride": 1, "padding": 1}, {"kernel_size": (2, 3, 1), "dilation": 2}]
)
def test_positions_of_volumes_as_torch(torch, options: dict):
    for x in (floats(1, 2, 4, 6, 5), np.round(floats(2, 4, 6, 5))):
        agree(F.max_pool3d, torch.nn.functional.max_pool3d, x, return_indices=True, **options)


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("options", [{"output_size": 3}, {"output_ratio": 0.5}, {"output_size": (2, 1, 3)}])
def test_random_places_as_torch(torch, rank: int, options: dict):
    if "output_ratio" in options:
        options = {"output_ratio": (0.5,) * rank}
    elif options["output_size"] != 3:
        options = {"output_size": (2, 1, 3)[:rank]}
    name = f"fractional_max_pool{rank}d"
    shape = (2, 3, 7, 8, 9)[: 2 + rank]
    agree(
        getattr(F, name),
        getattr(torch.nn.functional, name),
        floats(*shape),
        kernel_size=2,
        return_indices=True,
        _random_samples=positive(2, 3, rank),
        **options,
    )


def test_places_are_drawn_and_compile():
    x = tensor(floats(1, 2, 9, 9))
    graphc.manual_seed(1)
    one = F.fractional_max_pool2d(x, 2, 5)
    graphc.manual_seed(1)
    two = graphc.compile(lambda x: F.fractional_max_pool2d(x, 2, 5))(x)
    assert one.shape == (1, 2, 5, 5)
    np.testing.assert_array_equal(one.numpy(), two.numpy())
    run = there_and_back(graphc, 2)
    for a, b in zip(graphc.compile(run)(x[:, :, :8, :8]), run(x[:, :, :8, :8]), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_wrong_uses():
    x = graphc.ones(1, 1, 4, 4)
    with pytest.raises(ShapeError, match="differ"):
        F.max_unpool2d(x, graphc.zeros(1, 1, 2, 2, dtype=graphc.int64), 2)
    with pytest.raises(AttributeValueError, match=r"output_size \[12, 12\] is too far from \[8, 8\]"):
        F.max_unpool2d(x, graphc.zeros(1, 1, 4, 4, dtype=graphc.int64), 2, output_size=(12, 12))
    with pytest.raises(ArgumentError, match="either output_size or output_ratio"):
        F.fractional_max_pool2d(x, 2)
    with pytest.raises(AttributeValueError, match="not between 0 and 1"):
        F.fractional_max_pool2d(x, 2, output_ratio=1.5)
    with pytest.raises(ShapeError, match=r"\[4, 4\] windows of \[2, 2\] do not fit \[4, 4\]"):
        F.fractional_max_pool2d(x, 2, 4)
