"""Adam and AdamW: single precision, changed rates, state, corrections, errors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import AttributeValueError
from graphc.optim import Adam, Adamax, AdamW, NAdam, RAdam
from graphc.optim.adam import bias_correction
from tests.optim.compare import follows, parameters, steps_agree


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


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_the_rule(decay: float):
    def rule(value, gradient, state, t):
        gradient = gradient + decay * value
        state["mean"] = 0.8 * state.get("mean", 0) + 0.2 * gradient
        state["size"] = np.maximum(0.9 * state.get("size", 0), np.abs(gradient) + 1e-8)
        return value - 0.1 / (1 - 0.8**t) * state["mean"] / state["size"]

    follows(Adamax(parameters(), lr=0.1, betas=(0.8, 0.9), weight_decay=decay), rule)


def test_state_and_errors():
    p = parameters()[0]
    assert set(Adamax([p]).init_state(p)) == {"step", "exp_avg", "exp_inf"}
    with pytest.raises(AttributeValueError, match="Adamax: betas"):
        Adamax([p], betas=(0.9, 1.0))


@pytest.mark.parametrize("decoupled", [False, True])
def test_the_rule_nadam(decoupled: bool):
    def momentum(t):
        return 0.8 * (1 - 0.5 * 0.96 ** (t * 0.1))

    def rule(value, gradient, state, t):
        if decoupled:
            value = value * (1 - 0.05 * 0.1)
        else:
            gradient = gradient + 0.1 * value
        state["m"] = 0.8 * state.get("m", 0) + 0.2 * gradient
        state["n"] = 0.9 * state.get("n", 0) + 0.1 * gradient**2
        product = np.prod([momentum(i) for i in range(1, t + 1)])
        ahead = momentum(t + 1) * state["m"] / (1 - product * momentum(t + 1))
        here = (1 - momentum(t)) * gradient / (1 - product)
        return value - 0.05 * (ahead + here) / (np.sqrt(state["n"] / (1 - 0.9**t)) + 1e-8)

    options = {"weight_decay": 0.1, "momentum_decay": 0.1, "decoupled_weight_decay": decoupled}
    follows(NAdam(parameters(), lr=0.05, betas=(0.8, 0.9), **options), rule)


def test_state_nadam():
    p = parameters()[0]
    state = NAdam([p]).init_state(p)
    assert set(state) == {"step", "exp_avg", "exp_avg_sq", "mu_product"}
    assert state["mu_product"].item() == 1


def test_the_rule_radam():
    rectified = []

    def rule(value, gradient, state, t):
        gradient = gradient + 0.1 * value
        state["m"] = 0.8 * state.get("m", 0) + 0.2 * gradient
        state["v"] = 0.9 * state.get("v", 0) + 0.1 * gradient**2
        mean = state["m"] / (1 - 0.8**t)
        most = 2 / (1 - 0.9) - 1
        length = most - 2 * t * 0.9**t / (1 - 0.9**t)
        rectified.append(length > 5)
        if length <= 5:
            return value - 0.05 * mean
        scale = np.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
        return value - 0.05 * mean * scale * np.sqrt(1 - 0.9**t) / (np.sqrt(state["v"]) + 1e-8)

    follows(RAdam(parameters(), lr=0.05, betas=(0.8, 0.9), weight_decay=0.1), rule, steps=10)
    assert not rectified[0]
    assert rectified[-1]


def test_decoupled_decay():
    def rule(value, gradient, state, t):
        state["m"] = 0.8 * state.get("m", 0) + 0.2 * gradient
        return value * (1 - 0.05 * 0.1) - 0.05 * state["m"] / (1 - 0.8**t)

    follows(
        RAdam(parameters(), lr=0.05, betas=(0.8, 0.9), weight_decay=0.1, decoupled_weight_decay=True), rule, steps=2
    )
