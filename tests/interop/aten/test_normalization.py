"""Rules of normalizations."""

from __future__ import annotations

import pytest

from tests.interop.aten.compare import Sample, check, torch

X, PLACES = torch.linspace(-2, 2, 24).reshape(2, 3, 4), torch.tensor([[0, 2, 1], [1, 0, 2]])
W, B = torch.tensor([0.5, -1.0, 2.0]), torch.tensor([1.0, 0.0, -3.0])
MEAN, VAR = torch.tensor([0.3, -0.2, 0.1]), torch.tensor([1.5, 0.7, 2.0])
SAMPLES: list[Sample] = [
    ("layer_norm", X, [3, 4], X[0].clone(), X[1].clone(), 1e-3),
    ("layer_norm", X, [4]),
    ("rms_norm", X, [4], X[0, 0].clone(), 1e-4),
    ("rms_norm", X, [3, 4]),
    ("group_norm", X, 3, W, B, 1e-4),
    ("group_norm", X, 1),
    ("instance_norm", X, W, B, None, None, True, 0.1, 1e-5, False),
    ("instance_norm", X, W, None, MEAN, VAR, False, 0.1, 1e-5, False),
    ("batch_norm", X, W, B, MEAN, VAR, False, 0.1, 1e-5, False),
    ("batch_norm", X, None, None, None, None, True, 0.1, 1e-3, False),
    ("_native_batch_norm_legit_no_training", X, W, B, MEAN, VAR, 0.1, 1e-5),
    ("_native_batch_norm_legit_functional", X, W, B, MEAN, VAR, True, 0.3, 1e-5),
    ("_native_batch_norm_legit_functional", X, W, B, MEAN, VAR, False, 0.3, 1e-5),
    ("_native_batch_norm_legit.no_stats", X, None, B, True, 0.1, 1e-5),
    ("_weight_norm", X, X[:, :1, :1].abs() + 1, 0),
    ("_fused_rms_norm", X, [4], X[0, 0].clone(), 1e-4),
    ("_fused_rms_norm", X * 0, [4], None, None),
    ("native_layer_norm", X, [4], X[0, 0], None, 1e-5),
    ("native_group_norm", X, None, None, 2, 3, 4, 3, 1e-5),
    ("_weight_norm_interface", X, X[:1, :1] + 3, 2),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)
