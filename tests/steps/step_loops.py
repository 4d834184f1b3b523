"""Eager training loops that compiled steps are compared with."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

import graphc
from graphc import nn, optim
from graphc.nn import functional as F
from graphc.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


def classifier() -> nn.Module:
    """A small f64 model with batch norm and dropout."""
    graphc.manual_seed(0)
    parts = [nn.Linear(6, 16, bias=False), nn.BatchNorm1d(16), nn.Tanh(), nn.Dropout(0.25), nn.Linear(16, 3)]
    return nn.Sequential(*parts).double()


def batch(number: int, dtype: Any = np.float64) -> tuple[Any, Any]:
    """Batch ``number``."""
    rng = np.random.default_rng(number)
    x = rng.standard_normal((8, 6)).astype(dtype)
    return graphc.from_numpy(x * 3), graphc.from_numpy(rng.integers(0, 3, 8))


def both(
    make_optimizer: Callable[[Any], Any],
    *,
    calls: int = 12,
    accumulate: int = 1,
    clip_norm: float | None = None,
    clip_value: float | None = None,
    ema: float | None = None,
    loss_scale: Any = None,
) -> tuple[nn.Module, nn.Module, Any, Any]:
    """Trains twins, eagerly and by a compiled step; these, the step, and the averages of the eager one."""
    model = classifier()
    twin = copy.deepcopy(model)
    first, second = make_optimizer(model.parameters()), make_optimizer(twin.parameters())
    schedules = [optim.lr_scheduler.CosineAnnealingLR(o, T_max=calls) for o in (first, second)]
    average = None if ema is None else AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(ema))
    options = {"clip_norm": clip_norm, "clip_value": clip_value, "ema": ema, "loss_scale": loss_scale}
    step = graphc.compile_step(twin, F.cross_entropy, second, accumulate=accumulate, grad_norm=True, **options)
    for i in range(calls):
        graphc.manual_seed(i)
        expected = F.cross_entropy(model(batch(i)[0]), batch(i)[1])
        (expected / accumulate).backward()
        graphc.manual_seed(i)
        assert abs(step(*batch(i)).item() - expected.item()) < 1e-12
        if (i + 1) % accumulate:
            assert step.last_grad_norm is None
            continue
        if clip_value is not None:
            nn.utils.clip_grad_value_(model.parameters(), clip_value)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1e30 if clip_norm is None else clip_norm)
        assert abs(norm.item() - step.last_grad_norm.item()) < 1e-12
        first.step()
        first.zero_grad()
        if average is not None:
            average.update_parameters(model)
        for schedule in schedules:
            schedule.step()
    return model, twin, step, average


def difference(a: nn.Module, b: nn.Module) -> float:
    """The largest difference of two models' tensors."""
    pairs = zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    return max(float(np.abs(p.numpy() - q.numpy()).max()) for p, q in pairs)
