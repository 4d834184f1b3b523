"""Losses of differences and margins against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc.errors import AttributeValueError
from tests.nn.compare import agree, floats, positive

REDUCTIONS = ["mean", "sum", "none"]
PAIRS = [
    ("mse_loss", {}),
    ("l1_loss", {}),
    ("smooth_l1_loss", {}),
    ("smooth_l1_loss", {"beta": 0.3}),
    ("smooth_l1_loss", {"beta": 0.0}),
    ("huber_loss", {}),
    ("huber_loss", {"delta": 0.3}),
    ("poisson_nll_loss", {}),
]


@pytest.mark.parametrize(("name", "options"), PAIRS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_as_torch(torch, name: str, options: dict, reduction: str):
    ours, theirs = getattr(F, name), getattr(torch.nn.functional, name)
    agree(ours, theirs, floats(4, 3), floats(4, 3, seed=1), reduction=reduction, **options)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
def test_weighted_as_torch(torch, name: str, reduction: str):
    ours, theirs = getattr(F, name), getattr(torch.nn.functional, name)
    agree(ours, theirs, floats(4, 3), floats(4, 3, seed=1), weight=positive(4, 3), reduction=reduction)


@pytest.mark.parametrize("log_input", [True, False])
@pytest.mark.parametrize("full", [True, False])
def test_poisson_as_torch(torch, log_input: bool, full: bool):
    theirs = torch.nn.functional.poisson_nll_loss
    options = {"log_input": log_input, "full": full}
    agree(F.poisson_nll_loss, theirs, positive(4, 3), target=positive(4, 3, seed=1) * 5, **options)


def signs(*shape: int) -> np.ndarray:
    return np.where(floats(*shape, seed=9) > 0, 1.0, -1.0)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_margins_as_torch(torch, reduction: str):
    theirs = torch.nn.functional
    x, y = floats(4, 3), floats(4, 3, seed=1)
    agree(F.soft_margin_loss, theirs.soft_margin_loss, x, target=signs(4, 3), reduction=reduction)
    agree(F.hinge_embedding_loss, theirs.hinge_embedding_loss, x, target=signs(4, 3), reduction=reduction)
    options = {"margin": 0.4, "reduction": reduction}
    agree(F.margin_ranking_loss, theirs.margin_ranking_loss, x, y, target=signs(4, 3), **options)
    # PyTorch adds its eps to the squared norms, which differs in the twelfth digit.
    ours, other = F.cosine_embedding_loss, theirs.cosine_embedding_loss
    agree(ours, other, x, y, target=signs(4), margin=0.2, reduction=reduction, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("swap", [True, False])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_triplet_as_torch(torch, swap: bool, reduction: str):
    arrays = [floats(4, 3, seed=i) for i in range(3)]
    agree(F.triplet_margin_loss, torch.nn.functional.triplet_margin_loss, *arrays, swap=swap, reduction=reduction)


def test_shapes_that_differ_warn():
    with pytest.warns(UserWarning, match=r"target \[2\] is broadcast against the input \[2, 1\]"):
        assert F.mse_loss(graphc.zeros(2, 1), graphc.zeros(2), reduction="none").shape == (2, 2)


def test_errors():
    x = graphc.zeros(2)
    with pytest.raises(AttributeValueError, match="beta -1 is negative"):
        F.smooth_l1_loss(x, x, beta=-1)
    with pytest.raises(AttributeValueError, match="delta 0 is not positive"):
        F.huber_loss(x, x, delta=0)
