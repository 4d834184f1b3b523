"""Adam and AdamW: single precision, changed rates, state, corrections, errors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.optim import Adam, AdamW
from graphc.optim.adam import bias_correction
from tests.optim.compare import parameters, steps_agree


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_in_single_precision_as_torch(name: str):
    steps_agree(name, dtype="float32", rtol=1e-5, lr=0.01, weight_decay=0.01)


def test_changed_learning_rate_as_torch():
    def change(optimizer, step):
        optimizer.param_groups[0]["lr"] = 0.1 / (step + 1)

    steps_agree("Adam", change=change)


def test_state():
    p = parameters("float32")[0]
    state = Adam([p]).init_state(p)
    assert set(state) == {"step", "exp_avg", "exp_avg_sq"}
    assert state["step"].shape == () and state["step"].dtype is graphc.float32
    assert set(AdamW([p], amsgrad=True).init_state(p)) == {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"}


def test_numbers_may_be_tensors():
    p = parameters("float32")[0]
    for optimizer in (Adam([p], weight_decay=0.1), AdamW([p])):
        hyper = optimizer.hyper(optimizer.param_groups[0])
        gradient = graphc.ones(3, 4)
        with graphc.no_grad():
            plain, _ = optimizer.update(p, gradient, optimizer.init_state(p), hyper)
            assert {
                n: optimizer.number(optimizer.param_groups[0], n) for n in optimizer.schedulable
            }.items() <= hyper.items()
            traced = hyper | {name: graphc.tensor(hyper[name]) for name in optimizer.schedulable}
            tensors, _ = optimizer.update(p, gradient, optimizer.init_state(p), traced)
        assert tensors.dtype is graphc.float32
        np.testing.assert_allclose(plain.numpy(), tensors.numpy(), rtol=1e-6)


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9, 0.999, 0.99999])
@pytest.mark.parametrize("step", [1, 2, 1000])
def test_bias_correction_is_accurate_in_single_precision(beta: float, step: int):
    found = float(bias_correction(beta, graphc.tensor(float(step))))
    np.testing.assert_allclose(found, 1 - np.float64(beta) ** step, rtol=3e-7)
    if beta <= 0.9:
        found = float(bias_correction(graphc.tensor(beta), graphc.tensor(float(step))))
        np.testing.assert_allclose(found, 1 - np.float64(beta) ** step, rtol=2e-6)


def test_errors():
    with pytest.raises(ValueError, match=r"betas \(0.9, 1.0\)"):
        Adam(parameters(), betas=(0.9, 1.0))
    with pytest.raises(ValueError, match="eps must be 0 or more"):
        Adam(parameters(), eps=-1)
