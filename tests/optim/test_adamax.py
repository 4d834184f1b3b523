"""Adamax against the paper's rule: the decayed maximum in place of the root mean square."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.errors import AttributeValueError
from graphc.optim import Adamax
from tests.optim.compare import follows, parameters


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
