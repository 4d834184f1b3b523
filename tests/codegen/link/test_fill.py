"""Contents of sections are replaced in object files of all formats."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.errors import CompileError
from graphc.codegen.link.fill import fill_section
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import target_named
from graphc.files.object_archive import split_objects

TEXT = """\
target triple = "{triple}"
@first = constant [4 x i32] [i32 1, i32 2, i32 3, i32 4]
@weights = constant [64 x i8] zeroinitializer, section "{section}", align 64
@last = constant [4 x i32] [i32 5, i32 6, i32 7, i32 8]
"""
TARGETS = ("avx2", "neon", "rv64gc", "cortex-m4", "rv32imc", "windows-avx2", "macos-neon", "macos-avx2")


@pytest.mark.parametrize("name", TARGETS)
def test_contents_of_a_section_are_replaced(name: str):
    target = target_named(name)
    section = "__TEXT,__weights" if target.is_macos else ".rodata.weights"
    (code,) = split_objects(build_object(TEXT.format(triple=target.triple, section=section), target))
    weights = np.arange(1, 65, dtype=np.uint8)
    filled = fill_section(code, section, weights)
    start = filled.index(weights.tobytes())
    assert filled == code[:start] + weights.tobytes() + code[start + 64 :] and code[start : start + 64] == bytes(64)
    with pytest.raises(CompileError, match=rf"no section {section} of 63 bytes"):
        fill_section(code, section, weights[1:])
    with pytest.raises(CompileError, match=r"no section .other of 64 bytes"):
        fill_section(code, ".other", weights)
