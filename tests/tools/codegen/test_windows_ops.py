"""Ops as machine code of Windows: some samples for each target, under Wine."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphc.codegen.machine.target import target_named
from tests.codegen.link.windows_objects import need_wine
from tests.native import why_not_here
from tools.codegen import windows_ops
from tools.codegen.cross_ops import chosen

SAMPLES = 30


@pytest.mark.parametrize("level", ["sse2", "avx2", "avx512"])
def test_samples_give_what_their_references_give(level: str, tmp_path: Path):
    need_wine()
    if reason := why_not_here(target_named(level)):
        pytest.skip(reason)
    target = target_named(f"windows-{level}")
    cases = chosen(target, SAMPLES, seed=12)
    assert len(cases) > SAMPLES // 2
    assert windows_ops.run(cases, target, tmp_path) == []


def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(windows_ops.shutil, "which", lambda name: None)
    assert windows_ops.main(["--target", "windows-sse2", "--count", "1"]) == 2
    assert "no x86_64-w64-mingw32-gcc" in capsys.readouterr().err
