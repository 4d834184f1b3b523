"""Rules that fold elements together."""

from __future__ import annotations

import pytest

from tests.interop.aten.compare import Sample, check, torch

X, PLACES = torch.linspace(-2, 2, 24).reshape(2, 3, 4), torch.tensor([[0, 2, 1], [1, 0, 2]])
SAMPLES: list[Sample] = [
    ("max.other", X, -X),
    ("min.other", X, -X),
    ("argsort", X, 1, True),
    ("argsort.stable", X, {"stable": True, "dim": 0}),
    ("var", X, False),
    ("var.dim", X, [0, 2], True, True),
    ("std", X, True),
    ("std.dim", X, [1], False),
    ("norm.Scalar", X, 3),
    ("norm.ScalarOpt_dim_dtype", X, 2, [1], True, {"dtype": torch.float64}),
    ("sum.dim_IntList", X, [0, 2], True),
    ("var.correction", X, [1], {"correction": 0}),
    ("max.dim", X, 1),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)
