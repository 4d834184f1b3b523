"""Processes that share an optimizer have a part of its state each, which together is all of it."""

import json

import pytest

from tools.distributed import shared_state


def test_parts_are_all_together():
    total = shared_state.state_bytes(1, 16, 4)[0]
    shards = shared_state.state_bytes(2, 16, 4)
    assert 0.45 * total < max(shards) < 0.55 * total and abs(sum(shards) - total) < 0.01 * total


def test_the_command_prints_bytes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shared_state, "state_bytes", lambda ranks: [6_000_000 // ranks] * ranks)
    assert shared_state.main(["--ranks", "1,2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"1": [6_000_000], "2": [3_000_000, 3_000_000]}
    assert shared_state.main(["--ranks", "2"]) == 0
    assert capsys.readouterr().out == "2 ranks: 3.0, 3.0 MB\n"
