"""Rules of normalizations."""

from __future__ import annotations

import pytest

from tests.interop.aten.compare import Sample, check, torch

X, PLACES = torch.linspace(-2, 2, 24).reshape(2, 3, 4), torch.tensor([[0, 2, 1], [1, 0, 2]])
SAMPLES: list[Sample] = [
    ("native_layer_norm", X, [4], X[0, 0], None, 1e-5),
    ("native_group_norm", X, None, None, 2, 3, 4, 3, 1e-5),
    ("_weight_norm_interface", X, X[:1, :1] + 3, 2),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)
