"""Trains the same parameters with an optimizer of graphc and one of PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn

SHAPES = [(3, 4), (5,), ()]


def values(seed: int, dtype: str = "float64") -> list[np.ndarray]:
    """Numbers for every parameter."""
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.standard_normal(s), dtype) for s in SHAPES]


def parameters(dtype: str = "float64") -> list[Any]:
    """Parameters of several shapes."""
    return [nn.Parameter(graphc.tensor(v)) for v in values(0, dtype)]


def steps_agree(
    name: str, steps: int = 6, dtype: str = "float64", rtol: float = 1e-9, change: Any = None, **options: Any
) -> None:
    """Asserts that parameters agree after each of some steps with the same gradients.

    ``change(optimizer, step)`` runs on both optimizers before each step.
    """
    torch = pytest.importorskip("torch")
    ours = parameters(dtype)
    theirs = [torch.nn.Parameter(torch.tensor(v)) for v in values(0, dtype)]
    mine = getattr(graphc.optim, name)(ours, **options)
    other = getattr(torch.optim, name)(theirs, **options)
    for step in range(steps):
        for p, q, g in zip(ours, theirs, values(step + 1, dtype), strict=True):
            p.grad, q.grad = graphc.tensor(g), torch.tensor(g)
        for optimizer in (mine, other):
            if change is not None:
                change(optimizer, step)
            optimizer.step()
        for p, q in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=rtol, atol=rtol * 1e-2)


def follows(optimizer: Any, rule: Any, steps: int = 6) -> None:
    """Check that each parameter moves by ``rule(value, gradient, state, t)``, with t from 1 and a dict as state.

    The rule works on numpy arrays, keeps what it needs in the state, and returns the new value.
    """
    params = [p for group in optimizer.param_groups for p in group["params"]]
    expected: list[Any] = [p.detach().numpy().copy() for p in params]
    memory: list[dict] = [{} for _ in params]
    for t in range(1, steps + 1):
        for p, g in zip(params, values(t), strict=True):
            p.grad = graphc.tensor(g)
        optimizer.step()
        expected = [rule(v, g, m, t) for v, g, m in zip(expected, values(t), memory, strict=True)]
        for p, v in zip(params, expected, strict=True):
            np.testing.assert_allclose(p.detach().numpy(), v, rtol=1e-6, atol=1e-9)
