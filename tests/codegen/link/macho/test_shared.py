"""Libraries of Mach-O objects: they run here under a loader of the tests, and LLVM's tools read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphc.base.errors import CompileError
from graphc.codegen.link.macho.shared import link_dylib
from tests.codegen.link.macho.macos_objects import (
    EXPORTS,
    TARGETS,
    dylib,
    link_here,
    lld,
    llvm_tool,
    load_commands,
    macho,
    run_here,
)
from tests.codegen.link.macho.test_reader import DISTANCE, POINTERS, SWITCH
from tests.codegen.link.objects import MAIN, PRINTED, output

CALLER = """\
target triple = "{triple}"
declare i32 @call(i32, i32)
define i32 @caller(i32 %x) nounwind {{
  %y = call i32 @call(i32 0, i32 %x)
  ret i32 %y
}}
"""
USE = (
    "@last = internal global i32 0\ndefine void @use(i32 %x) {{\n  store i32 %x, ptr @last\n  ret void\n}}\n"
    "define i32 @read() {{\n  %v = load i32, ptr @last\n  ret i32 %v\n}}\n"
)
ADDEND = """\
@room = hidden global [4096 x i32] zeroinitializer
define i32 @far(i32 %x) nounwind {{
  store i32 %x, ptr getelementptr (i32, ptr @room, i64 1000)
  %place = getelementptr i32, ptr @room, i32 1000
  %value = load i32, ptr %place
  ret i32 %value
}}
"""


def run(target: str, folder: Path, source: str, functions: tuple[str, ...], library: bytes) -> str:
    """Return what a program of C prints that calls a library under the loader."""
    (folder / "main.c").write_text(source)
    (folder / "net.dylib").write_bytes(library)
    return run_here(link_here([folder / "main.c"], folder / "net.dylib", functions, target), folder)


@pytest.mark.parametrize("target", TARGETS)
def test_a_program_calls_the_library(target: str, tmp_path: Path):
    assert run(target, tmp_path, MAIN, EXPORTS, dylib(target=target)) == f"{PRINTED}\n"


@pytest.mark.parametrize("target", TARGETS)
def test_jump_tables_addends_and_pointers_are_right(target: str, tmp_path: Path):
    objects = [macho(target, text) for text in (SWITCH, USE, ADDEND, DISTANCE, POINTERS, "@x = global i32 9\n")]
    source = (
        "#include <stdio.h>\nvoid choose(int);\nint read(void), far(int);\nextern const int b[3], *const inside;\n"
        'int main() { for (int i = 0; i < 6; i++) { choose(i); printf("%d ", read()); }\n'
        'printf("%d %d", far(77), b[0]); return 0; }\n'
    )
    (tmp_path / "main.c").write_text(source)
    path = tmp_path / "net.dylib"
    path.write_bytes(dylib(*objects, target=target, exports=("choose", "read", "far", "b", "inside")))
    command = link_here([tmp_path / "main.c"], path, ("choose", "read", "far"), target, tables={"b": 12})
    assert run_here(command, tmp_path) == "10 21 32 43 54 54 77 1"


@pytest.mark.parametrize("target", TARGETS)
def test_other_tools_find_exports_rebases_and_commands(target: str, tmp_path: Path):
    path = tmp_path / "net.dylib"
    path.write_bytes(dylib(target=target))
    text = output(llvm_tool("llvm-objdump"), "--macho", "--all-headers", "--exports-trie", "--rebase", "--bind", path)
    for name in EXPORTS:
        assert f"_{name}\n" in text
    assert text.count(" pointer\n") == 4 and "@rpath/net.dylib" in text and "/usr/lib/libSystem.B.dylib" in text
    for command in ("LC_BUILD_VERSION", "LC_UUID", "LC_CODE_SIGNATURE", "LC_DYLD_INFO_ONLY", "LC_DYSYMTAB"):
        assert command in text
    assert "platform macos" in text and "minos 11.0" in text
    undefined = output(llvm_tool("llvm-nm"), "-u", path)
    assert undefined.strip() == ""
    assert "Format: Mach-O" in output(llvm_tool("llvm-readobj"), "--all", path)
    assert "_call" in output(llvm_tool("llvm-otool"), "-tV", path)


@pytest.mark.parametrize("target", TARGETS)
def test_other_linkers_link_with_it(target: str, tmp_path: Path):
    (tmp_path / "net.dylib").write_bytes(dylib(target=target))
    (tmp_path / "user.o").write_bytes(macho(target, CALLER))
    lld(target, tmp_path, "user.dylib", "user.o", "net.dylib")
    text = output(llvm_tool("llvm-objdump"), "--macho", "--lazy-bind", "--dylibs-used", tmp_path / "user.dylib")
    assert "@rpath/net.dylib" in text and "_call" in text


def test_equal_arguments_give_equal_bytes():
    assert dylib() == dylib() != dylib(name="other.dylib")
    uuids = [
        data[8:]
        for name in ("net.dylib", "other.dylib")
        for kind, data in load_commands(dylib(name=name))
        if kind == 0x1B
    ]
    assert uuids[0] != uuids[1]


def test_missing_and_double_definitions_are_named():
    with pytest.raises(CompileError, match="the export nothing is not defined"):
        dylib(exports=("nothing",))
    with pytest.raises(CompileError, match="the symbol use is not defined"):
        dylib(macho(text=SWITCH), exports=("choose",))
    with pytest.raises(CompileError, match="is defined twice"):
        dylib(macho(), macho())
    with pytest.raises(CompileError, match="several machines"):
        dylib(macho(), macho("macos-avx2", USE))


def test_words_in_read_only_sections_are_refused():
    text = '@x = global i32 1\n@p = constant ptr @x, section "__TEXT,__mine"\n'
    with pytest.raises(CompileError, match="in __TEXT,__mine, which is read-only, depends on its position"):
        link_dylib([macho(text=text)], ["p"], name="net.dylib")
