"""Modules of every kind of torch.nn, imported: results, gradients and written buffers are PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

import graphc
from graphc.errors import UnsupportedError
from tests.interop.torch.compare_modules import check_module
from tests.interop.torch.module_samples import FAMILIES, nn

torch = pytest.importorskip("torch")

EXACT = 1e-7
"""Of f64; some constants of PyTorch are f32."""
ROUNDED = 2e-4
BOTH = ("activations", "normalization", "recurrent")
"""Families of which some compute something else in training."""


@pytest.mark.sampled(50)
@pytest.mark.parametrize("sample", [s for f in FAMILIES.values() for s in f], ids=lambda s: s[0])
def test_a_module_in_training_computes_what_pytorch_does(sample: Any):
    check_module(sample, torch.float64, True, EXACT)


@pytest.mark.parametrize("sample", [s for f in BOTH for s in FAMILIES[f]], ids=lambda s: s[0])
def test_a_module_in_evaluation_computes_what_pytorch_does(sample: Any):
    check_module(sample, torch.float32, False, ROUNDED)


@pytest.mark.parametrize(
    ("module", "args"),
    [
        (nn.GaussianNLLLoss(), (torch.ones(2), torch.ones(2), torch.ones(2))),
        (nn.AdaptiveLogSoftmaxWithLoss(4, 3, [1]), (torch.ones(2, 4), torch.tensor([0, 1]))),
        (nn.CTCLoss(), (torch.ones(6, 2, 4).log_softmax(-1), torch.ones(2, 3, dtype=torch.int64), (6, 5), (3, 2))),
        (nn.BatchNorm1d(2, momentum=None), (torch.ones(3, 2),)),
    ],
    ids=lambda v: type(v).__name__,
)
def test_what_pytorch_cannot_export_is_refused_with_its_reason(module: Any, args: Any):
    with pytest.raises(UnsupportedError, match=r"torch\.export cannot export " + type(module).__name__):
        graphc.from_torch(module, args)
