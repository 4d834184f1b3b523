"""The benchmark command from start to end."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.harness.process import ROOT


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("option", ["--workloads", "--peers"])
def test_unknown_names_are_usage_errors(option: str):
    done = run_command(option, "nothing_like_it")
    assert done.returncode == 2
    assert "unknown: nothing_like_it; known: " in done.stderr
    assert done.stdout == ""


@pytest.mark.torch
@pytest.mark.slow
def test_torch_is_measured_and_compared():
    pytest.importorskip("torch")
    done = run_command(
        "--only-peers", "--workloads", "policy_b1,train_policy_b256", "--peers", "torch", "--rounds", "2",
        "--seconds", "0.05", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert list(report["versions"]) == ["torch"]
    for row in report["rows"]:
        figures = row["peers"]["torch"]
        assert len(figures["rounds_ms"]) == 2
        assert figures["error"] < 1e-6
        assert row["best_peer"] == "torch"
