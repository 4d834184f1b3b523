"""RAdam against the paper's rule: plain momentum first, then the rectified scaling."""

from __future__ import annotations

import numpy as np

from graphc.optim import RAdam
from tests.optim.compare import follows, parameters


def test_the_rule():
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
