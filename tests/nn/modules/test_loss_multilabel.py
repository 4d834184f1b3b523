"""Losses of several classes and of further distributions, as modules: their options reach the functions."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.nn import functional as F
from tests.nn.compare import classes, floats, positive, tensor

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


def test_weights_are_buffers():
    loss = nn.MultiMarginLoss(weight=tensor(WEIGHT))
    assert [name for name, _ in loss.named_buffers()] == ["weight"]
