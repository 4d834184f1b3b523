"""Losses as modules against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError
from tests.nn.compare import agree, classes, floats, positive, tensor

PAIRS = [
    ("L1Loss", {}),
    ("MSELoss", {}),
    ("SmoothL1Loss", {"beta": 0.5}),
    ("HuberLoss", {"delta": 0.5}),
    ("BCELoss", {}),
    ("BCEWithLogitsLoss", {}),
    ("KLDivLoss", {"log_target": True}),
]


@pytest.mark.parametrize(("name", "options"), PAIRS)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_pairs_as_torch(torch, name: str, options: dict, reduction: str):
    ours, theirs = (getattr(m, name)(reduction=reduction, **options) for m in (nn, torch.nn))
    agree(ours, theirs, positive(4, 3), positive(4, 3, seed=1))


def test_batch_mean_as_torch(torch):
    agree(nn.KLDivLoss(reduction="batchmean"), torch.nn.KLDivLoss(reduction="batchmean"), floats(4, 3), positive(4, 3))


@pytest.mark.parametrize("options", [{}, {"ignore_index": 1}, {"label_smoothing": 0.1}, {"weight": positive(5)}])
def test_cross_entropy_as_torch(torch, options: dict):
    target = np.asarray(classes(5, 6))
    mine = {k: tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    other = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    agree(nn.CrossEntropyLoss(**mine), torch.nn.CrossEntropyLoss(**other), floats(6, 5), target)
    if "label_smoothing" not in options:
        agree(nn.NLLLoss(**mine), torch.nn.NLLLoss(**other), floats(6, 5), target)


def test_others_as_torch(torch):
    x, y, z = (floats(4, 3, seed=i) for i in range(3))
    signs = np.sign(z)
    agree(nn.GaussianNLLLoss(full=True), torch.nn.GaussianNLLLoss(full=True), x, y, positive(4, 3))
    agree(nn.MarginRankingLoss(0.5), torch.nn.MarginRankingLoss(0.5), x, y, target=signs)
    agree(nn.HingeEmbeddingLoss(0.5), torch.nn.HingeEmbeddingLoss(0.5), x, target=signs)
    ours, theirs = nn.CosineEmbeddingLoss(0.1), torch.nn.CosineEmbeddingLoss(0.1)
    agree(ours, theirs, x, y, target=signs[:, 0], rtol=1e-7, atol=1e-9)
    agree(nn.TripletMarginLoss(swap=True), torch.nn.TripletMarginLoss(swap=True), x, y, z)


def test_pos_weight_as_torch(torch):
    weight = positive(3) * 5
    ours = nn.BCEWithLogitsLoss(pos_weight=tensor(weight))
    agree(ours, torch.nn.BCEWithLogitsLoss(pos_weight=torch.tensor(weight)), floats(4, 3), positive(4, 3))


def test_weights_are_buffers():
    loss = nn.CrossEntropyLoss(weight=graphc.ones(5))
    assert list(loss.state_dict()) == ["weight"]
    assert list(nn.CrossEntropyLoss().state_dict()) == []
    assert list(nn.BCEWithLogitsLoss(pos_weight=graphc.ones(2)).state_dict()) == ["pos_weight"]


def test_reduction_is_checked_when_it_is_made():
    with pytest.raises(AttributeValueError, match="reduction 'all' is not known"):
        nn.MSELoss(reduction="all")
    with pytest.warns(UserWarning, match="deprecated"):
        assert nn.L1Loss(size_average=False).reduction == "sum"


def test_ctc_is_the_function():
    logs = graphc.randn(5, 2, 3).log_softmax(-1)
    targets, lengths = graphc.tensor([[1, 2], [2, 1]]), ([5, 4], [2, 1])
    loss = nn.CTCLoss(blank=0, reduction="sum")
    assert loss(logs, targets, *lengths).item() == nn.functional.ctc_loss(logs, targets, *lengths, 0, "sum").item()
