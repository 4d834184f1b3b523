"""Adagrad against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.errors import AttributeValueError
from graphc.optim import Adadelta, RMSprop
from tests.optim.compare import follows, parameters, steps_agree


@pytest.mark.parametrize(
    "options",
    [{}, {"lr_decay": 0.1}, {"weight_decay": 0.1, "initial_accumulator_value": 0.5}, {"maximize": True, "eps": 1e-3}],
)
def test_as_torch(options: dict):
    steps_agree("Adagrad", lr=0.1, **options)


def test_the_rule():
    def rule(value, gradient, state, t):
        state["squares"] = 0.8 * state.get("squares", 0) + 0.2 * gradient**2
        delta = np.sqrt(state.get("steps", 0) + 1e-4) / np.sqrt(state["squares"] + 1e-4) * gradient
        state["steps"] = 0.8 * state.get("steps", 0) + 0.2 * delta**2
        return value - 0.5 * delta

    follows(Adadelta(parameters(), lr=0.5, rho=0.8, eps=1e-4), rule)


def test_state_and_errors():
    p = parameters()[0]
    assert set(Adadelta([p]).init_state(p)) == {"step", "square_avg", "acc_delta"}
    with pytest.raises(AttributeValueError, match="rho must be between 0 and 1, got 2"):
        Adadelta([p], rho=2.0)


OPTIONS = [{}, {"momentum": 0.9}, {"centered": True}, {"momentum": 0.5, "centered": True, "weight_decay": 0.1}]


@pytest.mark.parametrize("options", OPTIONS)
def test_state(options: dict):
    p = parameters()[0]
    names = {"step", "square_avg"}
    names |= {"momentum_buffer"} if "momentum" in options else set()
    names |= {"grad_avg"} if "centered" in options else set()
    assert set(RMSprop([p], **options).init_state(p)) == names
