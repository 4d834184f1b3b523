"""Memory of sessions: looked at three times, and the same after more calls of random sizes."""

from __future__ import annotations

import json

import pytest

from benchmarks import memory

FLAT_MB = 10.0
"""Growth that counts as none: caches of limited size and the allocator's fragments."""


@pytest.mark.parametrize("name", ["forest", "forest file", "two programs", "chain", "chain file", "lstm"])
def test_a_session_does_not_grow(name: str):
    figures = memory.run_memory(name, 300)
    assert figures["count"] == 300 and figures["few_mb"] > 0
    assert figures["all_mb"] - figures["half_mb"] < FLAT_MB


def test_the_command_prints_sessions_as_they_end(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("benchmarks.memory.pin", lambda cores: None)
    assert memory.main(["--only", "forest file", "--count", "30", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["forest file"]["count"] == 30 and "forest file 30" in printed.err
