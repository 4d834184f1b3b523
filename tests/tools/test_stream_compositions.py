"""Random compositions of layers along time as streams."""

from __future__ import annotations

import json
import sys

import pytest

from tools import stream_compositions

REFUSED = {35}
"""Nets whose code compares sizes by the remainder of the length: their program is one for some lengths only."""


@pytest.mark.parametrize("seed", range(0, 60, 10))
def test_a_sample_of_nets_gives_the_numbers_of_whole_sequences(seed: int):
    found = {number: (result, error) for number, result, error in stream_compositions.results(10, seed)}
    assert {number: entry for number, entry in found.items() if entry[0] == "differs"} == {}
    assert sum(result == "equal" for result, _ in found.values()) >= 3
    assert {number for number, (result, _) in found.items() if result == "refused"} == REFUSED & {*found}


def test_the_tool_counts_results(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sys, "argv", ["stream_compositions", "--count", "3", "--seed", "5", "--json"])
    assert stream_compositions.main() == 0
    totals = json.loads(capsys.readouterr().out)
    assert sum(totals[name] for name in ("equal", "refused", "skipped")) == 3
    assert totals["differing"] == []


def test_a_net_that_differs_fails_the_tool(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sys, "argv", ["stream_compositions", "--count", "2"])
    monkeypatch.setattr(stream_compositions, "compared", lambda seed: ("differs", 0.5))
    assert stream_compositions.main() == 1
    assert "seed 1: 0.5" in capsys.readouterr().out
