"""The table of tuning: a line for each model, and what its cells say."""

from __future__ import annotations

import json

import pytest

from benchmarks.tuning import COLUMNS, cells_of, main, row_of
from graphc.compiler.duel import Duel
from graphc.compiler.tuning import TunedKernel, Tuning

KERNEL = TunedKernel("k0", "0" * 64, 1, 6, "8x2 i/j/-", "4x4 i/j/-", 2e-3, 1e-3)


def tuning(kept: bool, blocks: bool, changes: str) -> Tuning:
    return Tuning("Net", "program 0", (), (KERNEL,), 3e-3, 2e-3 if kept else 3e-3, kept, changes, blocks, 0, 4.2)


def test_cells():
    both = tuning(kept=True, blocks=True, changes="lanes.long_copies=1")
    assert cells_of(both) == ["1.50", "`lanes.long_copies=1`, blocks of 1 kernels", "4"]
    assert cells_of(tuning(kept=False, blocks=True, changes="")) == ["1", "none", "4"]
    row = row_of("net", [both, both], Duel(2.0, 1.0, 7, 9))
    assert len(row) == len(COLUMNS) and row[:2] == ["net", "3.00"] and row[-1] == "2.00"


def test_json(capsys: pytest.CaptureFixture[str]):
    assert main(["policy_b1", "--seconds", "0.01", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["policy_b1"]
    assert len(facts["searches"]) == 2 and facts["searches"][0]["untried"] > 0 and facts["second"] > 0
