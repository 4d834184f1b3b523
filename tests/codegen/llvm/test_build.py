"""LLVM text to object code and assembly, and the refusal of text that is wrong."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from graphc.codegen.llvm.build import build_object, emit_assembly
from graphc.codegen.machine.target import host_target, named_targets, target_named
from graphc.errors import CompileError

TEXT = "define i64 @twice(i64 %x) {\n  %y = add i64 %x, %x\n  ret i64 %y\n}\n"


@pytest.mark.parametrize("name", [name for name, target in named_targets().items() if target.gpu is None])
def test_objects_and_assembly_of_every_target(name: str):
    target = target_named(name)
    assert build_object(TEXT, target).startswith(b"\x7fELF")
    assert "twice:" in emit_assembly(TEXT, target)


def test_equal_text_gives_equal_bytes():
    assert build_object(TEXT, host_target()) == build_object(TEXT, host_target())


@pytest.mark.parametrize("text", ["define i64 @f( {", "define i64 @f(i64 %x) {\n  ret i32 0\n}\n"])
def test_wrong_text(text: str):
    with pytest.raises(CompileError, match="LLVM refused the emitted text"):
        build_object(text, host_target())


def test_several_threads_build_at_once():
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: build_object(TEXT, host_target()), range(16)))
    assert len(found) == 1
