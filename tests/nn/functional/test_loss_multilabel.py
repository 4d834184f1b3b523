"""Losses of several classes at once: by hand, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc.errors import AttributeValueError, ShapeError


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


def test_a_gap_that_is_nan_counts_as_none():
    x = graphc.tensor([[0.5, float("nan"), 0.25]], dtype=graphc.float64, requires_grad=True)
    loss = F.multilabel_margin_loss(x, graphc.tensor([[0, -1, -1]]))
    loss.backward()
    assert loss.item() == 0.25 and x.grad.tolist() == [[-1 / 3, 0.0, 1 / 3]]
