"""Objects for Windows joined into one: programs of mingw link it, and see only the exports."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphc.base.errors import CompileError
from graphc.codegen.link import layout
from graphc.codegen.link.archive import write_archive
from graphc.codegen.link.coff_reader import read_coff
from graphc.codegen.link.coff_relocatable import merge_coff
from graphc.codegen.machine.target import target_named
from graphc.compiler.linking import builtins_for
from tests.codegen.link.objects import MAIN, PRINTED
from tests.codegen.link.windows_objects import EXPORTS, TARGET, coff, dll, run_c

TABLE = "@table = constant [4 x i32] [i32 100, i32 101, i32 102, i32 103]\n"


def merged(*objects: bytes) -> bytes:
    return merge_coff(objects, EXPORTS, builtins_for(target_named(TARGET), needs_libc=False))


def test_only_exports_are_visible():
    symbols = read_coff(merged(coff(), coff(TABLE))).symbols
    assert {s.name for s in symbols if s.binding != layout.LOCAL} == set(EXPORTS)
    assert all(s.section is not None for s in symbols) and "memset" in {s.name for s in symbols}


@pytest.mark.parametrize("archived", [False, True])
def test_a_program_of_mingw_links_it(archived: bool, tmp_path: Path):
    code = merged(coff(), coff(TABLE))
    name = "net.a" if archived else "net.o"
    (tmp_path / name).write_bytes(write_archive({"net.o": code}) if archived else code)
    assert run_c(MAIN.replace("long", "long long"), tmp_path, name).replace("\r", "") == f"{PRINTED}\n"


def test_it_links_to_a_library():
    assert dll(merged(coff(), coff(TABLE))).startswith(b"MZ")


def test_names_that_nobody_defines_are_refused():
    with pytest.raises(CompileError, match="the symbol table is not defined"):
        merged(coff())
