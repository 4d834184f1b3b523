"""Losses as modules: buffers, reductions, the function of CTC."""

from __future__ import annotations

import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError


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
