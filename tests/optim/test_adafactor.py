"""Adafactor against PyTorch, eagerly and compiled."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError
from graphc.optim import Adafactor
from tests.optim.compare import parameters, steps_agree


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lr": 0.5, "d": 2.0, "weight_decay": 0.1},
        {"beta2_decay": -0.3, "eps": (1e-3, 0.1), "maximize": True},
    ],
)
def test_as_torch(options: dict):
    steps_agree("Adafactor", steps=8, rtol=1e-6, **options)


def test_state():
    p = nn.Parameter(graphc.ones(2, 3, 4))
    state = Adafactor([p]).init_state(p)
    assert {name: t.shape for name, t in state.items()} == {"step": (), "row_var": (2, 3, 1), "col_var": (2, 1, 4)}
    assert set(Adafactor([q := parameters()[1]]).init_state(q)) == {"step", "variance"}


def test_compiled_training_agrees_with_eager_training():
    graphc.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    other = copy.deepcopy(net)
    x, y = graphc.randn(8, 4), graphc.randn(8, 2)
    optimizer, mirror = (Adafactor(m.parameters(), lr=0.1, weight_decay=0.01) for m in (net, other))
    step = graphc.compile_step(net, nn.functional.mse_loss, optimizer)
    for _ in range(5):
        step(x, y)
        mirror.zero_grad()
        nn.functional.mse_loss(other(x), y).backward()
        mirror.step()
    for p, q in zip(net.parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-3, atol=1e-5)


RANGES = "must be at most 0, d .* at least 1, eps .* at least 0"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta2_decay": 0.1}, RANGES),
        ({"d": 0.5}, RANGES),
        ({"eps": (-1.0, 1.0)}, RANGES),
        ({"lr": -1.0}, "lr must be 0 or more, got -1"),
    ],
)
def test_wrong_options(options: dict, message: str):
    with pytest.raises(AttributeValueError, match=message):
        Adafactor(parameters(), **options)
