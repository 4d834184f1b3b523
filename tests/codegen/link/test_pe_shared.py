"""DLLs of COFF objects: they run under Wine, hold nothing that nobody needs, and are the same each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphc.base.errors import CompileError
from graphc.codegen.link.coff_reader import read_coff
from graphc.codegen.link.pe_shared import live_sections
from graphc.codegen.link.resolve import resolve
from tests.codegen.link.objects import MAIN, PRINTED, TABLE, output
from tests.codegen.link.windows_objects import EXPORTS, coff, dll, inspector, run_c

UNUSED = "@unused = constant [4000 x i8] zeroinitializer\ndefine double @idle(double %x) {{\n  ret double %x\n}}\n"
SCALE = "define double @{name}(double %x) {{\n  %y = fmul double %x, 2.5\n  ret double %y\n}}\n"
UNDEFINED = "declare void @malloc()\ndefine void @f() {{\n  call void @malloc()\n  ret void\n}}\n"
FAR = """\
define void @fill(ptr %to, i64 %count) {{
  %buffer = alloca [50000 x i32], align 16
  call void @use(ptr %buffer)
  %last = getelementptr i32, ptr %buffer, i64 %count
  %value = load i32, ptr %last
  store i32 %value, ptr %to
  ret void
}}
define internal void @use(ptr %p) noinline {{
  store volatile i32 11, ptr %p
  ret void
}}
"""


def test_a_program_of_mingw_calls_the_library(tmp_path: Path):
    (tmp_path / "net.dll").write_bytes(dll())
    assert run_c(MAIN.replace("long", "long long"), tmp_path, "net.dll").replace("\r", "") == f"{PRINTED}\n"


def test_a_frame_of_many_pages_is_probed(tmp_path: Path):
    (tmp_path / "net.dll").write_bytes(dll(coff(FAR), exports=("fill",)))
    source = (
        "#include <stdio.h>\n#include <stdint.h>\nvoid fill(int *, int64_t);\n"
        'int main(void) { int r = 0; fill(&r, 0); printf("%d", r); return 0; }\n'
    )
    assert run_c(source, tmp_path, "net.dll") == "11"


def test_equal_arguments_give_equal_bytes():
    assert dll() == dll() != dll(name="other.dll")


def test_other_tools_find_exports_relocations_and_unwind_tables(tmp_path: Path):
    path = tmp_path / "net.dll"
    path.write_bytes(dll())
    text = output(inspector(), "--coff-exports", "--coff-basereloc", "--unwind", "--coff-imports", path)
    for name in EXPORTS:
        assert f"Name: {name}\n" in text
    assert text.count("Type: DIR64") == 3 and "ALLOC_SMALL" in text and "Import {" not in text
    starts = [line.partition("(")[2] for line in text.splitlines() if "StartAddress" in line]
    assert len(starts) > 2 and starts == sorted(starts)


def test_sections_that_no_export_needs_are_left_out():
    program = resolve([coff(), coff(UNUSED)], {"table": TABLE}, read=read_coff)
    live = live_sections(program, ["clear"])
    assert not any(s.nbytes == 4000 for s in live)
    assert len(dll(coff(), coff(UNUSED))) == len(dll())


def test_constants_of_two_objects_are_kept_once():
    objects = [coff(SCALE.replace("{name}", name)) for name in ("f", "g")]
    program = resolve(objects, read=read_coff)
    constants = [s for s in live_sections(program, ["f", "g"]) if s.name == ".rdata" and s.nbytes == 8]
    assert len(constants) == 1 and sum(s.nbytes == 8 for s in program.sections if s.name == ".rdata") == 2


def test_missing_and_double_definitions_are_named():
    with pytest.raises(CompileError, match="the export nothing is not defined"):
        dll(exports=("nothing",))
    with pytest.raises(CompileError, match="the symbol malloc is not defined"):
        dll(coff(UNDEFINED), exports=("f",))
    with pytest.raises(CompileError, match="is defined twice"):
        dll(coff(), coff())
