"""The benchmark command from start to end."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.__main__ import parse_arguments
from benchmarks.harness.measure import Table, format_facts, format_rows
from benchmarks.harness.process import ROOT
from benchmarks.harness.results import Result


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("option", ["--workloads", "--peers"])
def test_unknown_names_are_usage_errors(option: str):
    done = run_command(option, "nothing_like_it")
    assert done.returncode == 2
    assert "unknown: nothing_like_it; known: " in done.stderr
    assert done.stdout == ""


def test_variants_of_peers_are_names_too():
    options = parse_arguments(["--own", "graphc:int8,graphc:70%", "--peers", "torch:bf16", "--workloads", "vae"])
    assert (options.own, options.peers) == (["graphc:int8", "graphc:70%"], ["torch:bf16"])
    with pytest.raises(SystemExit):
        parse_arguments(["--own", "nobody:int8"])


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
        assert len(row["rounds_ms"]["torch"]) == 2
        assert row["errors"]["torch"] < 1e-6
        assert row["best_peer"] == "torch"


def test_the_table_marks_the_best_peer_wrong_numbers_and_what_is_missing():
    no_lstm, errors = {"graphc": "TraceError: no lstm"}, {"torch": float("nan")}
    times = {"graphc": [2.0], "torch": [5.0], "jax": [3.0]}
    facts = {"graphc": {"first s": 0.1}, "jax": {"unlimited": "1 of 3 products"}}
    rows = [
        Result("a", facts, times, {}, {"graphc": 1e-7, "torch": 0.0, "jax": 0.5}),
        Result("b", {}, {"torch": [7.0]}, no_lstm),
        Result("c", {}, {"torch": [7.0]}, no_lstm, errors),
    ]
    table = Table(rows, {}, {"openvino": "not installed"})
    lines = format_rows(table, ["torch", "graphc", "jax", "openvino"]).splitlines()
    assert lines[0].startswith("| workload | graphc | torch | jax | openvino | best peer / graphc |")
    assert lines[2] == "| a | 2.00 | 5.00 | **3.00!^** | - | 1.50 | 1.0e-07 | 0.10 |"
    assert lines[3] == "| b | - | **7.00** | - | - | - | - | - |"
    assert lines[4] == "| c | - | **7.00!** | - | - | - | - | - |"
    shown = format_facts(table, ["graphc", "torch"]).splitlines()
    assert shown[0] == "| workload | peer | ms | times as fast as graphc | error | first s |"
    assert shown[2] == "| a | graphc | 2.00 | 1.00 | 1.0e-07 | 0.10 |"
    assert shown[3] == "| a | torch | 5.00 | 0.40 | 0.0e+00 | - |"
    notes = ["absent: openvino (not installed)", "^ a, jax: more instructions than the target's in 1 of 3 products"]
    assert lines[6:] == [*notes, "graphc: TraceError: no lstm: b, c"]
