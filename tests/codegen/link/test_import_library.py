"""Import libraries: mingw links with them, other tools read them, and long names are whole."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from graphc.codegen.link.import_library import write_import_library
from tests.codegen.link.objects import output
from tests.codegen.link.windows_objects import coff, dll, inspector, need_wine, run_c
from tools.codegen.windows_ops import COMPILER, run_under_wine

MACHINE = 0x8664
TEXT = """\
@answers = constant [2 x i32] [i32 41, i32 42]
define i32 @first() {{
  ret i32 40
}}
"""
MAIN = """\
#include <stdio.h>
int first(void);
extern __declspec(dllimport) const int answers[2];
int main(void) { printf("%d %d %d", first(), answers[0], answers[1]); return 0; }
"""


@pytest.mark.parametrize("name", ["net.dll", "a-name-longer-than-a-field.dll"])
def test_mingw_links_functions_and_tables(name: str, tmp_path: Path):
    (tmp_path / name).write_bytes(dll(coff(TEXT), exports=("answers", "first"), name=name))
    (tmp_path / "net.lib").write_bytes(write_import_library(name, ["answers", "first"], ["answers"], MACHINE))
    assert run_c(MAIN, tmp_path, "net.lib") == "40 41 42"


START = """\
int first(void);
extern __declspec(dllimport) const int answers[2];
int start(void) { return first() + answers[1] - answers[0]; }
"""


def test_a_linker_of_the_kind_of_microsoft_accepts_it(tmp_path: Path):
    need_wine()
    linker = next((path for path in map(shutil.which, ("lld-link", "lld-link-14", "lld-link-19")) if path), None)
    if linker is None:
        pytest.skip("lld-link is not installed")
    (tmp_path / "net.dll").write_bytes(dll(coff(TEXT), exports=("answers", "first")))
    (tmp_path / "net.lib").write_bytes(write_import_library("net.dll", ["answers", "first"], ["answers"], MACHINE))
    (tmp_path / "start.c").write_text(START)
    program, code = tmp_path / "start.exe", tmp_path / "start.o"
    output(COMPILER, "-O1", "-c", "-o", code, tmp_path / "start.c")
    options = "/entry:start", "/nodefaultlib", "/subsystem:console", f"/out:{program}"
    output(linker, *options, code, tmp_path / "net.lib")
    assert run_under_wine(program, folder=tmp_path).returncode == 41


def test_other_tools_read_the_records(tmp_path: Path):
    path = tmp_path / "net.lib"
    path.write_bytes(write_import_library("net.dll", ["first", "answers"], ["answers"], MACHINE))
    text = output(inspector(), "--symbols", path)
    assert "Symbol: __imp_first" in text and "Symbol: first" in text and "Symbol: answers" not in text
    assert "__IMPORT_DESCRIPTOR_net" in text and "net_NULL_THUNK_DATA" in text


def test_equal_arguments_give_equal_bytes():
    first, second = (write_import_library("net.dll", names, ["b"], MACHINE) for names in (["a", "b"], ["b", "a"]))
    assert first == second and first.startswith(b"!<arch>\n") and len(first) % 2 == 0
