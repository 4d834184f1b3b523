"""Random sequences of hooks: the same events in eager mode and compiled, and a difference is told."""

from __future__ import annotations

import pytest

from tools.nets import hooks


@pytest.mark.sampled(30)
@pytest.mark.parametrize("seed", range(0, 100, 10))
def test_sequences(seed, capsys):
    assert hooks.main(["--sequences", "10", "--steps", "6", "--seed", str(seed)]) == 0
    assert '"sequences": 10' in capsys.readouterr().out


def test_a_lost_event_is_told(monkeypatch, capsys):
    act = hooks.Sequences._act

    def losing(self, action, step):
        act(self, action, step)
        if self.call is not self.net and len(self.log) > 1:
            del self.log[0]

    monkeypatch.setattr(hooks.Sequences, "_act", losing)
    assert hooks.main(["--sequences", "1", "--seed", "2"]) == 1
    assert "seed 2: event 0" in capsys.readouterr().err
