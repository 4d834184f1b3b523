"""Random sequences of hooks: the same events in eager mode and compiled, and a difference is told."""

from __future__ import annotations

import pytest

from tools.nets import hooks
from tools.nets.run import DIFFERENT, EQUAL


@pytest.mark.sampled(30)
@pytest.mark.parametrize("seed", range(0, 100, 10))
def test_sequences(seed, monkeypatch):
    monkeypatch.setattr(hooks, "STEPS", 6)
    assert {hooks.judge(str(number)) for number in range(seed, seed + 10)} == {(EQUAL, "")}


def test_a_lost_event_is_told(monkeypatch):
    act = hooks.Sequences._act

    def losing(self, action, step):
        act(self, action, step)
        if self.call is not self.net and len(self.log) > 1:
            del self.log[0]

    monkeypatch.setattr(hooks.Sequences, "_act", losing)
    outcome = hooks.judge("2")
    assert outcome.kind == DIFFERENT and outcome.detail.startswith("event 0")
