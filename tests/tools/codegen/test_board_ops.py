"""Samples of ops on emulated boards: the instructions that they take, and those that are proven."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphc.codegen.machine.linkage import ENTRY
from graphc.codegen.machine.target import target_named
from graphc.compiler.realtime import prove_modules
from tools.codegen import cross_ops
from tools.codegen.board_ops import count_instructions
from tools.codegen.boards import BOARDS
from tools.codegen.wasm_ops import object_of

SAMPLES = 60
MOST = 3_000_000
"""Instructions of a call that the board's clock can count."""


@pytest.mark.parametrize("name", BOARDS)
def test_samples_take_no_more_instructions_than_is_proven(name: str, tmp_path: Path):
    target = target_named(name)
    if reason := cross_ops.missing_tool(target):
        pytest.skip(reason)
    proven = []
    for case in cross_ops.chosen(target, SAMPLES, seed=5):
        report = prove_modules([case.module], target, ENTRY, name=case.title)
        if report.instructions is not None and report.instructions <= MOST and not report.outside:
            proven.append((case, report.instructions))
    assert len(proven) > SAMPLES // 2
    cases = [case for case, _ in proven]
    objects = [object_of(case.module, f"case_{i}", target) for i, case in enumerate(cases)]
    counted = count_instructions(objects, lambda some: cross_ops.input_of(cases[some]), target, tmp_path)
    for (case, most), count in zip(proven, counted, strict=True):
        assert 0 < count <= most, case.title
    margin = 4  # in place of a missing FPU, arithmetic takes more instructions for rare numbers
    assert sum(counted) * margin >= sum(most for _, most in proven)
