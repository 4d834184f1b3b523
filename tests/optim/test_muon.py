"""Muon against its definition in f64, and against PyTorch, which iterates in bf16."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError, ShapeError
from graphc.optim import AdamW, Muon
from graphc.optim.muon import COEFFICIENTS, orthogonalized

SHAPES = [(4, 6), (7, 3)]


def values(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s) for s in SHAPES]


@pytest.mark.parametrize("shape", SHAPES)
def test_singular_values_come_near_one(shape: tuple[int, int]):
    x = np.random.default_rng(0).standard_normal(shape)
    u, s, v = np.linalg.svd(x, full_matrices=False)
    a, b, c = COEFFICIENTS
    s = s / np.linalg.norm(s)
    for _ in range(5):
        s = a * s + b * s**3 + c * s**5
    found = orthogonalized(graphc.tensor(x), COEFFICIENTS, 5, 1e-7).numpy()
    np.testing.assert_allclose(found, (u * s) @ v, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    "options", [{}, {"nesterov": False, "weight_decay": 0.0}, {"lr": 0.1, "adjust_lr_fn": "match_rms_adamw"}]
)
def test_as_torch(torch, options: dict):
    ours = [nn.Parameter(graphc.tensor(v)) for v in values(0)]
    theirs = [torch.nn.Parameter(torch.tensor(v)) for v in values(0)]
    mine, other = Muon(ours, **options), torch.optim.Muon(theirs, **options)
    for step in range(4):
        for p, q, g in zip(ours, theirs, values(step + 1), strict=True):
            p.grad, q.grad = graphc.tensor(g), torch.tensor(g)
        mine.step()
        other.step()
    for p, q, start in zip(ours, theirs, values(0), strict=True):
        moved = q.detach().numpy() - start
        np.testing.assert_allclose(p.detach().numpy() - start, moved, atol=0.02 * np.abs(moved).max())


def test_compiled_training_agrees_with_eager_training():
    graphc.manual_seed(0)
    net = nn.Linear(4, 6, bias=False)
    other = copy.deepcopy(net)
    x, y = graphc.randn(8, 4), graphc.randn(8, 6)
    step = graphc.compile_step(net, nn.functional.mse_loss, Muon(net.parameters(), lr=0.1))
    mirror = Muon(other.parameters(), lr=0.1)
    for _ in range(4):
        step(x, y)
        mirror.zero_grad()
        nn.functional.mse_loss(other(x), y).backward()
        mirror.step()
    np.testing.assert_allclose(net.weight.detach().numpy(), other.weight.detach().numpy(), rtol=1e-3, atol=1e-4)


def test_wrong_uses():
    with pytest.raises(ShapeError, match=r"matrices, not \[6\]\n  try    use AdamW"):
        Muon(nn.Linear(4, 6).parameters())
    weight = nn.Linear(4, 6).weight
    for options in ({"adjust_lr_fn": "best"}, {"ns_steps": 100}, {"ns_coefficients": (1.0,)}, {"lr": -1.0}):
        with pytest.raises(AttributeValueError):
            Muon([weight], **options)
    AdamW(nn.Linear(4, 6).parameters())
