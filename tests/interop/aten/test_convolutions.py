"""Rules of convolutions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interop.aten.compare import Sample, check, torch

_numbers: Any = torch.Generator().manual_seed(0)


def some(*sizes: int) -> Any:
    return torch.randn(sizes, generator=_numbers)


X, PLACES = torch.linspace(-2, 2, 24).reshape(2, 3, 4), torch.tensor([[0, 2, 1], [1, 0, 2]])
WIDE, THIN, BIAS = some(4, 3, 3), some(3, 1, 2), some(4)
IMAGE, SQUARE = some(2, 3, 5, 6), some(4, 3, 2, 3)
CUBE, BLOCK = some(1, 3, 4, 5, 3), some(4, 3, 2, 2, 3)
SAMPLES: list[Sample] = [
    ("conv1d", X, WIDE, BIAS, [1], [1], [1], 1),
    ("conv1d", X, THIN, None, [2], [0], [2], 3),
    ("conv1d.padding", X, WIDE, BIAS, [1], "same", [2], 1),
    ("conv1d.padding", X, WIDE, None, [2], "valid", [1], 1),
    ("conv2d", IMAGE, SQUARE, BIAS, [2, 1], [1, 0], [1, 2], 1),
    ("conv2d.padding", IMAGE, SQUARE, BIAS, [1, 1], "same"),
    ("conv3d", CUBE, BLOCK, BIAS, [1, 2, 1], [1, 0, 1], [1, 1, 1], 1),
    ("conv3d.padding", CUBE, BLOCK, None, [1, 1, 1], "valid"),
    ("conv_transpose1d", X, some(3, 2, 3), some(2), [2], [1], [1], 1, [2]),
    ("conv_transpose2d.input", IMAGE, some(3, 2, 3, 2), None, [2, 1], [1, 0], [1, 0], 1, [1, 1]),
    ("conv_transpose2d.input", IMAGE, some(3, 1, 2, 2), some(3), [1, 1], [0, 0], [0, 0], 3, [2, 1]),
    ("conv_transpose3d.input", CUBE, some(3, 2, 2, 1, 2), some(2), [2, 1, 1], [0, 0, 1], [1, 0, 0]),
    ("convolution", X, X[:, :, :3].clone(), None, [1], [1], [1], False, [0], 1),
    ("convolution", X, torch.ones(3, 2, 2), torch.ones(2), [2], [0], [1], True, [1], 1),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)
