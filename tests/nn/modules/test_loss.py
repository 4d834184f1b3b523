"""Losses as modules: buffers, reductions, the function of CTC."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError
from graphc.nn import functional as F
from tests.nn.compare import classes, floats, positive, tensor


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


LOGITS = floats(3, 4)
WEIGHT = positive(4)
SIGNS = np.sign(floats(3, 4, seed=1))
LABELS = np.array([[2, 0, -1, 3], [1, -1, 2, 0], [-1, 0, 1, 2]])


@pytest.mark.parametrize(
    ("name", "options", "arrays"),
    [
        ("PoissonNLLLoss", {"log_input": False, "full": True, "eps": 1e-3}, (positive(3, 4), positive(3, 4, seed=1))),
        ("PoissonNLLLoss", {"reduction": "none"}, (LOGITS, positive(3, 4))),
        ("SoftMarginLoss", {"reduction": "sum"}, (LOGITS, SIGNS)),
        ("MultiLabelMarginLoss", {}, (LOGITS, LABELS)),
        ("MultiLabelSoftMarginLoss", {"weight": WEIGHT, "reduction": "none"}, (LOGITS, (SIGNS + 1) / 2)),
        ("MultiMarginLoss", {"p": 2, "margin": 0.5, "weight": WEIGHT}, (LOGITS, classes(4, 3))),
        ("TripletMarginWithDistanceLoss", {"margin": 0.3, "swap": True}, [floats(4, 3, seed=i) for i in range(3)]),
    ],
)
def test_as_torch(torch, name: str, options: dict, arrays: tuple[np.ndarray, ...]):
    mine = {k: tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    other = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    found = getattr(nn, name)(**mine)(*map(tensor, arrays))
    wanted = getattr(torch.nn, name)(**other)(*map(torch.tensor, arrays))
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-7)


def test_a_distance_of_ones_own():
    calls = []

    def distance(a: graphc.Tensor, b: graphc.Tensor) -> graphc.Tensor:
        calls.append((a.shape, b.shape))
        return (a - b).abs().sum(1)

    triplet = [tensor(floats(2, 3, seed=i)) for i in range(3)]
    loss = nn.TripletMarginWithDistanceLoss(distance_function=distance, margin=2.0)
    assert loss(*triplet).item() == F.triplet_margin_with_distance_loss(
        *triplet, distance_function=distance, margin=2.0
    )
    assert calls[:2] == [((2, 3), (2, 3))] * 2


def test_weights_are_buffers_loss_multilabel():
    loss = nn.MultiMarginLoss(weight=tensor(WEIGHT))
    assert [name for name, _ in loss.named_buffers()] == ["weight"]
