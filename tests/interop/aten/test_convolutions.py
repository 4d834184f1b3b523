"""Rules of convolutions."""

from __future__ import annotations

import pytest

from tests.interop.aten.compare import Sample, check, torch

X, PLACES = torch.linspace(-2, 2, 24).reshape(2, 3, 4), torch.tensor([[0, 2, 1], [1, 0, 2]])
SAMPLES: list[Sample] = [
    ("convolution", X, X[:, :, :3].clone(), None, [1], [1], [1], False, [0], 1),
    ("convolution", X, torch.ones(3, 2, 2), torch.ones(2), [2], [0], [1], True, [1], 1),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)
