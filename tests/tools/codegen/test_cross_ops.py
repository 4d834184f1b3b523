"""Ops as machine code of other processors: some samples on each machine that can be run here."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.codegen.machine.target import Target, target_named
from tools.codegen import cross_ops

SAMPLES = 40


@pytest.mark.parametrize("name", ["sse2", "neon", "rv64gc"])
def test_samples_give_what_their_references_give(name: str, tmp_path):
    target = target_named(name)
    if reason := cross_ops.missing_tool(target):
        pytest.skip(reason)
    cases = cross_ops.chosen(target, SAMPLES, seed=11)
    assert len(cases) > SAMPLES // 2
    assert cross_ops.run(cases, target, tmp_path) == []


def test_a_result_that_differs_is_named():
    cases = cross_ops.chosen(target_named("rv64gc"), 3, seed=1)
    results = b"".join(np.ascontiguousarray(a).tobytes() for case in cases for a in case.expected)
    assert cross_ops.compare(cases, results) == []
    wrong = bytes(b ^ 0x55 for b in results)
    assert len(cross_ops.compare(cases, wrong)) >= 1 and cases[0].title in cross_ops.compare(cases, wrong)[0]


def test_the_command_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(cross_ops.shutil, "which", lambda tool: None)
    assert cross_ops.main(["--target", "neon"]) == 2
    assert "cannot run here: no " in capsys.readouterr().err


def test_the_command_counts_programs_and_exits_1_where_one_differs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(cross_ops, "missing_tool", lambda target: "")
    monkeypatch.setattr(cross_ops, "run", lambda cases, target, folder: [])
    assert cross_ops.main(["--target", "rv64gc", "--count", "3", "--seed", "1"]) == 0
    assert capsys.readouterr().out == "rv64gc: 3 samples, 0 differ\n"
    monkeypatch.setattr(cross_ops, "run", lambda cases, target, folder: [f"{cases[0]}: differs"])
    asked: list[tuple[Target, int, int]] = []

    def programs(target: Target, count: int, seed: int) -> list[cross_ops.Program]:
        asked.append((target, count, seed))
        return cross_ops.chosen(target, 1, seed=1)

    assert cross_ops.command("", "graphs", 7, programs, ["--target", "neon"]) == 1
    assert asked == [(target_named("neon"), 7, 0)] and capsys.readouterr().out.endswith(
        "differs\nneon: 1 graphs, 1 differ\n"
    )
