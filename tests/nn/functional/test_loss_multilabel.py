"""Losses of several classes at once: against PyTorch, by hand, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc.errors import AttributeValueError, ShapeError
from tests.nn.compare import agree, classes, floats, positive

LABELS = np.array([[2, 0, -1, 3], [1, -1, 2, 0], [-1, 0, 1, 2]])


@pytest.mark.parametrize("options", [{}, {"p": 2, "margin": 0.5}, {"weight": positive(4)}, {"reduction": "none"}])
def test_multi_margin_as_torch(torch, options: dict):
    theirs = torch.nn.functional.multi_margin_loss
    agree(F.multi_margin_loss, theirs, floats(3, 4), classes(4, 3), **options)
    if "weight" not in options:
        agree(F.multi_margin_loss, theirs, floats(4), np.array(2), **options)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_multilabel_margin_as_torch(torch, reduction: str):
    theirs = torch.nn.functional.multilabel_margin_loss
    agree(F.multilabel_margin_loss, theirs, floats(3, 4), LABELS, reduction=reduction)
    agree(F.multilabel_margin_loss, theirs, floats(4), LABELS[0], reduction=reduction)


@pytest.mark.parametrize("options", [{}, {"weight": positive(4)}, {"reduction": "none"}])
def test_multilabel_soft_margin_as_torch(torch, options: dict):
    truth = (floats(3, 4, seed=1) > 0).astype(np.float64)
    theirs = torch.nn.functional.multilabel_soft_margin_loss
    agree(
        lambda x, **more: F.multilabel_soft_margin_loss(x, graphc.tensor(truth), **more),
        lambda x, **more: theirs(x, torch.tensor(truth), **more),
        floats(3, 4),
        **options,
    )


@pytest.mark.parametrize("options", [{}, {"margin": 0.2, "swap": True}, {"reduction": "none"}])
def test_triplets_as_torch(torch, options: dict):
    triplet = [floats(4, 3, seed=i) for i in range(3)]
    theirs = torch.nn.functional.triplet_margin_with_distance_loss
    agree(F.triplet_margin_with_distance_loss, theirs, *triplet, rtol=1e-6, **options)


def test_by_hand():
    x = graphc.tensor([[0.1, 0.2, 0.4, 0.8]])
    assert F.multi_margin_loss(x, graphc.tensor([3])).item() == pytest.approx((0.3 + 0.4 + 0.6) / 4)
    labels = graphc.tensor([[3, 0, -1, 1]])
    wanted = (1 - (0.1 - 0.2) + 1 - (0.1 - 0.4) + 1 - (0.8 - 0.2) + 1 - (0.8 - 0.4)) / 4
    assert F.multilabel_margin_loss(x, labels).item() == pytest.approx(wanted)
    assert F.multilabel_soft_margin_loss(graphc.zeros(1, 2), graphc.ones(1, 2)).item() == pytest.approx(np.log(2))


def test_any_distance_serves():
    one, two, four = (graphc.tensor([[v]]) for v in (1.0, 2.0, 4.0))
    loss = F.triplet_margin_with_distance_loss(
        one, four, two, distance_function=lambda a, b: (a - b).abs().sum(1), margin=0.5
    )
    assert loss.item() == 2.5


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, y: F.multi_margin_loss(x, y, p=3), AttributeValueError, "p must be 1 or 2, got 3"),
        (lambda x, y: F.multi_margin_loss(x, y[:1]), ShapeError, "multi_margin_loss: input"),
        (lambda x, y: F.multilabel_margin_loss(x, y), ShapeError, "multilabel_margin_loss: input"),
    ],
)
def test_what_is_refused(call, error: type[Exception], text: str):
    with pytest.raises(error, match=text):
        call(graphc.zeros(2, 3), graphc.tensor([0, 1]))
