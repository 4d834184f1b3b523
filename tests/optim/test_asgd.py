"""Averaged gradient descent: its falling rate, its decay, and the mean that it keeps."""

from __future__ import annotations

import numpy as np

from graphc.optim import ASGD
from tests.optim.compare import follows, parameters


def test_the_rule():
    def rule(value, gradient, state, t):
        eta = 0.1 / (1 + 0.05 * 0.1 * (t - 1)) ** 0.75
        return value * (1 - 0.05 * eta) - eta * gradient

    follows(ASGD(parameters(), lr=0.1, lambd=0.05), rule)


def test_the_mean_starts_at_t0():
    seen = []

    def rule(value, gradient, state, t):
        value = value - 0.1 * gradient
        state.setdefault("seen", []).append(value)
        seen.append(state["seen"])
        return value

    params = parameters()
    optimizer = ASGD(params, lr=0.1, lambd=0.0, t0=2)
    follows(optimizer, rule, steps=6)
    # Up to the step after t0 the mean is the parameter itself.
    for p, values in zip(params, seen[-len(params) :], strict=True):
        np.testing.assert_allclose(optimizer.state[p]["ax"].numpy(), np.mean(values[3:], 0), rtol=1e-5, atol=1e-7)
