"""The entry of a program that takes denormal numbers for zeros."""

from __future__ import annotations

import pytest

from graphc.codegen.llvm.flush import FLUSHED, flushing
from graphc.codegen.machine.target import target_named


@pytest.mark.parametrize("target", ["avx2", "neon"])
def test_the_mode_is_set_before_the_program_and_restored_after_it(target: str):
    mode = target_named(f"{target}:flush").flush_mode
    assert mode is not None
    function = flushing("entry", [("ptr noalias", "%table"), ("i64", "%chunk")], mode, local=True)
    call = f"  call void @{FLUSHED}(ptr %table, i64 %chunk)"
    lines = function.body.splitlines()
    assert lines == ["entry:", *mode.set_mode, call, *mode.restore_mode, "  ret void"]
    assert mode.set_mode and mode.restore_mode and function.calls
