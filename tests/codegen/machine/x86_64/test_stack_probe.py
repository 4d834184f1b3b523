"""Probe of stack pages: LLVM calls it for large frames in code for Windows, and only there."""

from __future__ import annotations

import pytest

from graphc.codegen.llvm.build import build_object, emit_assembly
from graphc.codegen.machine.target import target_named
from graphc.codegen.machine.x86_64.stack_probe import FUNCTIONS

TEXT = """\
declare void @use(ptr)
define void @f() {{
  %room = alloca [{bytes} x i8]
  call void @use(ptr %room)
  ret void
}}
"""


@pytest.mark.parametrize(("target", "nbytes", "probed"), [("sse2", 9000, 0), ("windows-sse2", 9000, 1)])
def test_frames_of_pages_are_probed_on_windows(target: str, nbytes: int, probed: int):
    assert emit_assembly(TEXT.format(bytes=nbytes), target_named(target)).count("callq\t__chkstk") == probed
    assert "__chkstk" not in emit_assembly(TEXT.format(bytes=100), target_named(target))


def test_the_code_is_what_the_comment_says():
    target = target_named("windows-sse2")
    code = build_object(target.system_function("__chkstk"), target)
    assert bytes.fromhex("4c8d5424084d89d34929c3") in code and set(FUNCTIONS) == {"__chkstk"}
    assert target.system_function("memcpy") == "" == target_named("sse2").system_function("__chkstk")
