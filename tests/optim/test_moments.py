"""Optimizers with two running means: decay rates, schedulable betas, corrections."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import AttributeValueError
from graphc.optim import Adam, Adamax, NAdam, RAdam
from graphc.optim.moments import Moments, bias_correction, decayed, inverse_root
from tests.optim.compare import parameters


@pytest.mark.parametrize("cls", [Adam, Adamax, NAdam, RAdam])
def test_betas(cls: type[Moments]):
    params = parameters()
    for betas in ((1.0, 0.9), (0.9, 1.0), (-0.1, 0.9)):
        with pytest.raises(AttributeValueError, match="at least 0 and below 1"):
            cls(params, betas=betas)
    optimizer = cls(params, betas=(0.8, 0.9))
    (group,) = optimizer.param_groups
    hyper = optimizer.hyper(group)
    assert (hyper["beta1"], hyper["beta2"]) == (0.8, 0.9)
    assert "betas" not in hyper
    group["betas"] = (0.5, 0.9)
    assert optimizer.number(group, "beta1") == 0.5
    assert optimizer.number(group, "lr") == group["lr"]


@pytest.mark.parametrize("beta", [0.0, 0.9, 0.999])
@pytest.mark.parametrize("step", [1, 3, 100000])
def test_bias_correction(beta: float, step: int):
    count = graphc.tensor(float(step), dtype=graphc.float64)
    wanted = 1 - beta**step
    assert float(bias_correction(beta, count)) == pytest.approx(wanted, rel=1e-12)
    if beta:
        assert bias_correction(graphc.tensor(beta, dtype=graphc.float64), count).item() == pytest.approx(wanted)


def test_a_small_correction_keeps_its_digits():
    """1 - beta ** step would lose nearly all of them in f32."""
    beta = 1 - 1e-7
    assert bias_correction(beta, graphc.tensor(1.0)).item() == pytest.approx(1e-7, rel=1e-5)


def test_inverse_root():
    assert inverse_root(4.0) == 0.5
    assert inverse_root(graphc.tensor([4.0, 16.0])).tolist() == [0.5, 0.25]


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("decoupled", [False, True])
def test_weight_decay(maximize: bool, decoupled: bool):
    p, g = graphc.tensor([2.0, -4.0]), graphc.tensor([1.0, 1.0])
    hyper = {"maximize": maximize, "decoupled_weight_decay": decoupled, "weight_decay": 0.5, "lr": 0.1}
    value, gradient = decayed(p, g, hyper)
    sign = -1.0 if maximize else 1.0
    wanted = (p.numpy() * 0.95, sign * g.numpy()) if decoupled else (p.numpy(), sign * g.numpy() + 0.5 * p.numpy())
    np.testing.assert_allclose(value.numpy(), wanted[0])
    np.testing.assert_allclose(gradient.numpy(), wanted[1])
