"""NAdam against the paper's rule, with its growing momentum."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.optim import NAdam
from tests.optim.compare import follows, parameters


@pytest.mark.parametrize("decoupled", [False, True])
def test_the_rule(decoupled: bool):
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


def test_state():
    p = parameters()[0]
    state = NAdam([p]).init_state(p)
    assert set(state) == {"step", "exp_avg", "exp_avg_sq", "mu_product"}
    assert state["mu_product"].item() == 1
