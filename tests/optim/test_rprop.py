"""Rprop: steps grow while the sign stays, shrink and pause when it turns, and keep to their limits."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.errors import AttributeValueError
from graphc.optim import Rprop
from tests.optim.compare import follows, parameters


@pytest.mark.parametrize("maximize", [False, True])
def test_the_rule(maximize: bool):
    def rule(value, gradient, state, t):
        gradient = -gradient if maximize else gradient
        turn = gradient * state.get("before", 0)
        factor = np.where(turn > 0, 1.5, np.where(turn < 0, 0.4, 1.0))
        state["size"] = np.clip(state.get("size", 0.1) * factor, 0.05, 0.2)
        state["before"] = np.where(turn < 0, 0.0, gradient)
        return value - np.sign(state["before"]) * state["size"]

    options = {"etas": (0.4, 1.5), "step_sizes": (0.05, 0.2), "maximize": maximize}
    follows(Rprop(parameters(), lr=0.1, **options), rule, steps=10)


def test_state_and_errors():
    p = parameters()[0]
    state = Rprop([p], lr=0.25).init_state(p)
    assert set(state) == {"step", "prev", "step_size"}
    assert set(state["step_size"].numpy().reshape(-1)) == {0.25}
    with pytest.raises(AttributeValueError, match="one number below 1 and one above"):
        Rprop([p], etas=(1.2, 0.5))
