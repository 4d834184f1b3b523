"""The benchmark of quantized models: it times both forms of a case."""

from __future__ import annotations

import json

import pytest

from benchmarks import quantization
from benchmarks.harness.results import OWN

ONE = ["--only", "one row", "--rounds", "2", "--seconds", "0.001"]


def test_both_forms_are_timed(capsys: pytest.CaptureFixture[str]):
    assert quantization.main([*ONE, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert [len(row["rounds_ms"][kind]) for kind in (OWN, quantization.FLOAT)] == [2, 2]


def test_the_table_has_a_row_for_the_model(capsys: pytest.CaptureFixture[str]):
    assert quantization.main(ONE) == 0
    assert "| linear layers 1024-1024-1024, one row |" in capsys.readouterr().out
