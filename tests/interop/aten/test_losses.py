"""Rules of losses and of their backward passes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interop.aten.compare import Sample, check, torch

_numbers: Any = torch.Generator().manual_seed(0)


def some(*sizes: int) -> Any:
    return torch.randn(sizes, generator=_numbers)


X, Y, ONE = some(3, 4), some(3, 4), torch.tensor(0.7)
P, T = torch.rand(3, 4, generator=_numbers), torch.rand(3, 4, generator=_numbers).round()
LABELS, CLASSES, MAPS = torch.tensor([1, 3, -100]), some(4).abs(), some(2, 4, 3, 2)
PLACES = torch.tensor([[[0, 1], [2, 3], [1, 1]], [[3, 3], [0, 1], [1, 2]]])
UNIT, SIGNS = P * 0.8 + 0.1, torch.tensor([1.0, -1.0, 1.0])
SAMPLES: list[Sample] = [
    ("nll_loss", X, LABELS, CLASSES, 1, -100),
    ("nll_loss2d", MAPS, PLACES, CLASSES, 2),
    *[(name, X, Y, kind) for name in ("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss") for kind in (0, 1, 2)],
    ("smooth_l1_loss", X, Y, 1, 0.5),
    ("soft_margin_loss", X, T * 2 - 1, 1),
    ("mse_loss_backward", ONE, X, Y, 1),
    ("mse_loss_backward", Y, X, Y, 0),
    ("smooth_l1_loss_backward", ONE, X, Y, 2, 0.5),
    ("huber_loss_backward", ONE, X, Y, 1, 0.5),
    ("soft_margin_loss_backward", ONE, X, T * 2 - 1, 1),
    ("kl_div", X, P, 2),
    ("kl_div", X, Y, 2, {"log_target": True}),
    ("multilabel_margin_loss", X, torch.tensor([[2, 0, -1, 1]] * 3), 2),
    ("poisson_nll_loss", X, UNIT, True, True, 1e-8, 1),
    ("margin_ranking_loss", X[:, 0], X[:, 1], SIGNS, 0.5, 2),
    ("hinge_embedding_loss", X[:, 0], SIGNS, 0.5, 0),
    ("cosine_embedding_loss", X, Y, SIGNS, 0.1, 0),
    ("triplet_margin_loss", X, Y, UNIT, 1.5, 2.0, 1e-6, True, 0),
    ("multi_margin_loss", X, torch.tensor([1, 3, 0]), 2, 0.5, CLASSES, 0),
    ("binary_cross_entropy", P, T, X, 1),
    ("binary_cross_entropy_backward", ONE, P, T, X, 1),
    ("binary_cross_entropy_backward", Y, P, T, None, 0),
    ("binary_cross_entropy_with_logits", X, T, None, CLASSES, 1),
    ("cross_entropy_loss", X, LABELS, CLASSES, 1, -100, 0.1),
    ("nll_loss_nd", X, LABELS, CLASSES),
    *[("nll_loss_forward", X, LABELS, w, kind, -100) for w in (None, CLASSES) for kind in (1, 2)],
    ("nll_loss_forward", X, LABELS, CLASSES, 0, -100),
    ("nll_loss2d_forward", MAPS, PLACES, CLASSES, 1, 2),
    ("nll_loss_backward", ONE, X, LABELS, CLASSES, 1, -100, CLASSES[1] + CLASSES[3]),
    ("nll_loss_backward", some(3), X, LABELS, None, 0, -100, torch.tensor(0.0)),
    ("nll_loss2d_backward", ONE, MAPS, PLACES, None, 2, -100, torch.tensor(12.0)),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample[0])
def test_an_operator_gives_what_pytorch_gives(sample: Sample):
    check(sample)
