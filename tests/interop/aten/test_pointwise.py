"""Rules of what is computed element by element."""

from __future__ import annotations

import pytest

from tests.interop.aten.compare import Sample, check, torch

X, PLACES = torch.linspace(-2, 2, 24).reshape(2, 3, 4), torch.tensor([[0, 2, 1], [1, 0, 2]])
SAMPLES: list[Sample] = [
    ("true_divide.Tensor", PLACES, X[0, 0, :3].clone()),
    ("gelu", X, {"approximate": "tanh"}),
    ("_softmax", X, -1, False),
    ("pow.Scalar", 2, X),
    ("__and__.Tensor", PLACES, PLACES + 1),
    ("__or__.Scalar", PLACES, 1),
    ("__xor__.Tensor", X > 0, X > 1),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)
