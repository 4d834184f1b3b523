"""The benchmark of strict order: it times both kinds of one case, and prints their ratio."""

from __future__ import annotations

import json

import pytest

from benchmarks import strict_order
from benchmarks.harness.results import OWN

POLICY = ["--only", "policy", "--rounds", "2", "--seconds", "0.001"]


def test_both_kinds_are_timed(capsys: pytest.CaptureFixture[str]):
    assert strict_order.main([*POLICY, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert [len(row["rounds_ms"][kind]) for kind in (OWN, strict_order.STRICT)] == [2, 2] and row["cost"] > 0


def test_the_table_ends_with_the_mean(capsys: pytest.CaptureFixture[str]):
    assert strict_order.main(POLICY) == 0
    out = capsys.readouterr().out
    assert "| RL policy, 17-64-64-6, batch 1 |" in out and "geometric mean" in out
