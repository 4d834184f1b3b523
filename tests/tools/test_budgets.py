"""The tool that compares and records budgets."""

from __future__ import annotations

import json
from pathlib import Path

import llvmlite
import pytest

from tools import budgets

RECORD: budgets.Record = {
    "commit": "abc",
    "llvmlite": llvmlite.__version__,
    "figures": {"policy_b1": {"kernels": 3, "code_bytes": 100}},
    "changes": [{"model": "policy_b1", "figure": "kernels", "value": 4, "reason": "one more"}],
}


def test_the_last_change_of_a_figure_counts():
    assert budgets.allowed(RECORD, "policy_b1") == {"kernels": 4, "code_bytes": 100}
    assert budgets.allowed(RECORD, "net_b1") == {}


def test_a_rise_a_fall_and_what_is_new_are_told():
    figures = {"kernels": 5, "code_bytes": 99, "arena_bytes": 0}
    assert budgets.differences(RECORD, "policy_b1", figures) == [
        "policy_b1: kernels rose from 4 to 5",
        "policy_b1: code_bytes fell from 100 to 99",
        "policy_b1: arena_bytes is 0 and not recorded",
    ]
    assert not budgets.differences(RECORD, "policy_b1", {"kernels": 4, "code_bytes": 100})


def test_code_of_another_llvm_is_not_compared():
    other: budgets.Record = {**RECORD, "llvmlite": "0.0"}
    assert not budgets.differences(other, "policy_b1", {"kernels": 4, "code_bytes": 999})
    assert budgets.differences(other, "policy_b1", {"kernels": 5, "code_bytes": 999})


def test_the_figures_of_a_model():
    figures = budgets.model_figures("train_policy_b256")
    assert figures.keys() == {
        *("kernels", "arena_bytes", "cycles", "code_bytes", "packed_bytes"),
        *("llvm_lines", "python_calls"),
    }
    assert figures["kernels"] > 10 and figures["cycles"] > 1000 and figures["code_bytes"] > 1000
    assert figures["packed_bytes"] == 0  # weights that a step changes
    assert budgets.model_figures("policy_b1")["packed_bytes"] >= 4 * 64 * 64


def test_calls_count_alike_in_each_process_and_have_slack():
    calls = budgets.measure("policy_b1")["python_calls"]
    assert calls == budgets.measure("policy_b1")["python_calls"] > 10_000
    record: budgets.Record = {**RECORD, "figures": {"policy_b1": {"python_calls": 1000}}, "changes": []}
    assert not budgets.differences(record, "policy_b1", {"python_calls": 1030})
    assert budgets.recorded(record, "policy_b1", {"python_calls": 970}, "why") == record
    assert budgets.differences(record, "policy_b1", {"python_calls": 1031}) and budgets.differences(
        record, "policy_b1", {"python_calls": 969}
    )


def test_import_loads_nothing_of_others():
    assert budgets.import_figures()["other_packages"] == 0


def test_what_differs_is_recorded_with_a_reason_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "budgets.json"
    budgets.write(RECORD, path)
    monkeypatch.setattr(budgets, "read", lambda: json.loads(path.read_text()))
    monkeypatch.setattr(budgets, "write", lambda record, write=budgets.write: write(record, path))
    monkeypatch.setattr(budgets, "measure", lambda name: {"kernels": 7, "code_bytes": 100})
    assert budgets.main(["--models", "policy_b1"]) == 1
    assert capsys.readouterr().out == "policy_b1: kernels rose from 4 to 7\n1 models, 1 figures differ\n"
    with pytest.raises(SystemExit):
        budgets.main(["--models", "policy_b1", "--write"])
    assert budgets.main(["--models", "policy_b1", "--write", "--reason", "three more"]) == 0
    assert budgets.main(["--models", "policy_b1"]) == 0
    changes = json.loads(path.read_text())["changes"]
    assert changes[-1] == {"model": "policy_b1", "figure": "kernels", "value": 7, "reason": "three more"}
    assert len(changes) == 2
