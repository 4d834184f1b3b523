"""Objects for macOS joined into one: other linkers link it and its archive, and see only the exports."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from graphc.base.errors import ArtifactError, CompileError
from graphc.codegen.link import layout
from graphc.codegen.link.archive import write_darwin_archive
from graphc.codegen.link.macho.reader import read_macho
from graphc.codegen.link.macho.relocatable import merge_macho
from graphc.codegen.machine.target import target_named
from graphc.compiler.linking import builtins_for
from tests.codegen.link.macho.macos_objects import EXPORTS, TARGETS, dylib, link_here, lld, llvm_tool, macho, run_here
from tests.codegen.link.macho.test_reader import ADDENDS, DISTANCE, POINTERS, SWITCH
from tests.codegen.link.objects import MAIN, PRINTED, output

TABLE = "@table = constant [4 x i32] [i32 100, i32 101, i32 102, i32 103]\n"
CALLER = """\
target triple = "{triple}"
declare i32 @call(i32, i32)
declare i32 @direct(i32)
declare void @clear(ptr, i64)
@keep = global [3 x ptr] [ptr @call, ptr @direct, ptr @clear]
"""


def merged(target: str, *objects: bytes) -> bytes:
    supply = builtins_for(target_named(target), needs_libc=False)
    return merge_macho(objects or (macho(target), macho(target, TABLE)), {n: n for n in EXPORTS}, supply)


@pytest.mark.parametrize("target", TARGETS)
def test_only_exports_are_visible(target: str):
    symbols = read_macho(merged(target)).symbols
    assert {s.name for s in symbols if s.binding != layout.LOCAL} == set(EXPORTS)
    assert all(s.section is not None for s in symbols) and "memset" in {s.name for s in symbols}


@pytest.mark.parametrize("target", TARGETS)
def test_it_links_to_the_same_library(target: str, tmp_path: Path):
    (tmp_path / "main.c").write_text(MAIN)
    (tmp_path / "net.dylib").write_bytes(dylib(merged(target), target=target))
    command = link_here([tmp_path / "main.c"], tmp_path / "net.dylib", EXPORTS, target)
    assert run_here(command, tmp_path) == f"{PRINTED}\n"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("archived", [False, True])
def test_what_another_linker_makes_of_it_runs(archived: bool, target: str, tmp_path: Path):
    code, name = merged(target), "net.a" if archived else "net.o"
    (tmp_path / name).write_bytes(write_darwin_archive({"net.o": code}) if archived else code)
    (tmp_path / "user.o").write_bytes(macho(target, CALLER))
    lld(target, tmp_path, "net.dylib", "user.o", name)
    (tmp_path / "main.c").write_text(MAIN)
    command = link_here([tmp_path / "main.c"], tmp_path / "net.dylib", EXPORTS, target)
    assert run_here(command, tmp_path) == f"{PRINTED}\n"


def test_names_and_undefined_symbols_stay():
    code = merge_macho([macho(), macho(text=SWITCH)], {"call": "run", "choose": "choose"})
    symbols = {s.name: s for s in read_macho(code).symbols}
    assert symbols["run"].binding == layout.GLOBAL and symbols["direct"].binding == layout.LOCAL
    assert {name for name, s in symbols.items() if s.section is None} == {"fmod", "memset", "table", "use"}
    with pytest.raises(CompileError, match="the export nothing is not defined"):
        merge_macho([macho()], {"nothing": "nothing"})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "text", [SWITCH, ADDENDS, DISTANCE, POINTERS], ids=["switch", "addends", "distance", "pointers"]
)
def test_relocations_keep_their_addends(text: str, target: str):
    def described(code: bytes) -> list[tuple]:
        return [
            (r.rule.name, r.rule.nbytes, r.symbol.value + r.addend, r.offset)
            for s in read_macho(code).sections
            for r in s.relocations
        ]

    code = macho(target, text)
    names = {s.name: s.name for s in read_macho(code).symbols if s.section is not None and s.binding != layout.LOCAL}
    once = merge_macho([code], names)
    assert described(once) == described(code) and merge_macho([once], names) == once


def test_inspectors_read_it(tmp_path: Path):
    (tmp_path / "net.o").write_bytes(merged("macos-neon"))
    text = output(llvm_tool("llvm-objdump"), "--macho", "-r", "-t", tmp_path / "net.o")
    assert "GOTLDP" in text and "_call" in text


def test_damaged_objects_raise_no_other_error():
    code, generator, refused = macho(), random.Random(8), 0
    for _ in range(500):
        damaged = bytearray(code)
        for _ in range(generator.randrange(1, 4)):
            damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
        try:
            merged("macos-neon", bytes(damaged), macho(text=TABLE))
        except (ArtifactError, CompileError):
            refused += 1
    assert refused > 75
