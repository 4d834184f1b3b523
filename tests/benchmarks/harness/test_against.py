"""A tree against a commit: the criterion for a change, and the comparison from start to end."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.harness import against, commits
from benchmarks.harness.against import AGAIN, NOW, THEN, judge
from benchmarks.harness.process import ROOT
from benchmarks.harness.results import Result


def row(now: list[float], again: list[float], then: list[float], name: str = "policy_b1") -> Result:
    return Result(name, {}, {NOW: now, AGAIN: again, THEN: then})


def test_a_ratio_inside_of_the_spread_of_the_same_code_does_not_count():
    change = judge(row([1.0, 1.0, 1.0], [0.9, 1.0, 1.1], [0.95, 0.95, 0.95]))
    assert change is not None
    assert (change.ratio, change.low, change.high) == (0.95, 0.9, 1.1)
    assert not change.counts and not change.worse


@pytest.mark.parametrize(("then", "counts", "worse"), [(0.96, True, True), (0.98, True, False), (1.2, True, False)])
def test_a_ratio_outside_of_it_counts_and_is_worse_below_the_limit(then: float, counts: bool, worse: bool):
    change = judge(row([2.0, 2.0, 2.0], [1.99, 2.0, 2.01], [2 * then] * 3))
    assert change is not None
    assert (change.counts, change.worse) == (counts, worse)


def test_rounds_are_compared_with_each_other():
    change = judge(row([1.0, 2.0, 4.0], [1.0, 2.0, 4.0], [1.1, 2.2, 4.4]))
    assert change is not None and change.ratio == pytest.approx(1.1)
    assert change.low == change.high == 1.0


def test_the_summary_names_what_is_slower_what_is_unclear_and_what_failed():
    failed = row([], [], [], "lstm_b1_t64")
    failed.problems[THEN] = "RuntimeError: no"
    text = against.format_changes(
        [
            row([1.0] * 3, [0.99, 1.0, 1.01], [0.9] * 3, "net_b1"),
            row([1.0] * 3, [0.8, 1.0, 1.2], [0.9] * 3, "mlp_b1"),
            row([1.0] * 3, [1.0] * 3, [1.5] * 3, "gpt_b1_t128"),
            failed,
        ],
        "abc",
    )
    assert "below 0.97 of abc: net_b1\n" in text
    assert "(measure again): mlp_b1\n" in text
    assert "faster: gpt_b1_t128\n" in text
    assert "then: RuntimeError: no: lstm_b1_t64\n" in text
    assert "| net_b1 | 1.00 | 1.00 | 0.900 | 0.900 | 0.99-1.01 | slower |" in text
    assert against.format_changes([row([1.0], [1.0], [1.0])], "abc").endswith("\nno change counts\n")


def _has_history() -> bool:
    try:
        commits.resolve("HEAD")
    except (ValueError, FileNotFoundError):
        return False
    return True


@pytest.mark.slow
@pytest.mark.skipif(not _has_history(), reason="not a git checkout")
def test_a_commit_is_measured_beside_this_tree():
    arguments = ["--against", "HEAD", "--workloads", "policy_b1,train_policy_b256", "--rounds", "2", "--json"]
    command = [sys.executable, "-m", "benchmarks", *arguments, "--seconds", "0.02"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode in (0, 1), done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [r["name"] for r in rows] == ["policy_b1", "train_policy_b256"]
    for measured in rows:
        assert set(measured["rounds_ms"]) == {NOW, AGAIN, THEN} and not measured["problems"]
        assert {len(rounds) for rounds in measured["rounds_ms"].values()} == {2}
        assert max(measured["errors"].values()) < 1e-3


def test_an_unknown_commit_is_a_usage_error():
    command = [sys.executable, "-m", "benchmarks", "--against", "no_such_commit", "--workloads", "policy_b1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert "'no_such_commit' is not a commit" in done.stderr
