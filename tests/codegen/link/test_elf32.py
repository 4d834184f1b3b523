"""Object files of 32-bit processors: their symbols, and damaged ones."""

from __future__ import annotations

import pytest

from graphc.base.errors import ArtifactError
from graphc.codegen.link.archive import write_archive
from graphc.codegen.link.elf32 import is_elf32, read_contents, read_functions
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import target_named
from graphc.files.object_archive import split_objects

TEXT = """
target triple = "{triple}"
@table = constant [4 x i32] [i32 1, i32 2, i32 3, i32 4], section ".rodata.own"
declare i32 @other(i32)
define internal i32 @local(i32 %x) noinline nounwind {{
  %y = mul i32 %x, %x
  ret i32 %y
}}
define i32 @seen(i32 %x) nounwind {{
  %y = call i32 @other(i32 %x)
  %z = call i32 @local(i32 %y)
  ret i32 %z
}}
"""


@pytest.fixture(scope="module")
def code() -> bytes:
    target = target_named("cortex-m4")
    return build_object(TEXT.format(triple=target.triple), target)


def test_symbols_that_others_see_and_code(code: bytes):
    contents = read_contents(code)
    assert sorted(contents.defined) == ["seen", "table"] and contents.undefined == ("other",)
    assert 8 <= contents.code_bytes < 100
    assert is_elf32(code) and not is_elf32(code[:4] + b"\2" + code[5:])


def test_instructions_of_functions(code: bytes):
    functions = read_functions(code)
    assert functions.keys() == {"local", "seen"}
    for function in functions.values():
        assert sum(map(len, function.instructions)) == function.nbytes and function.start % 2 == 0
    assert functions["local"].instructions == (b"\x40\x43", b"\x70\x47")  # muls r0, r0, r0; bx lr


def test_instructions_of_risc_v_have_two_or_four_bytes():
    target = target_named("rv32imc")
    functions = read_functions(build_object(TEXT.format(triple=target.triple), target))
    assert functions["local"].instructions == (b"\x33\x05\xa5\x02", b"\x82\x80")  # mul a0, a0, a0; ret
    assert sum(map(len, functions["seen"].instructions)) == functions["seen"].nbytes


def test_constants_are_no_instructions():
    target = target_named("cortex-m4")
    text = "define float @f(float %x) nounwind {\n  %y = fadd float %x, 0x3FB99999A0000000\n  ret float %y\n}"
    function = read_functions(build_object(f'target triple = "{target.triple}"\n{text}', target))["f"]
    padding = b"\x00\xbf"
    assert [len(x) for x in function.instructions if x != padding] == [4, 4, 2] and function.nbytes == 16


def test_archives_list_its_symbols(code: bytes):
    archive = write_archive({"x.o": code})
    assert b"seen\0" in archive[:200] and b"other\0" not in archive[:200]
    assert list(split_objects(archive))[-1] == code


def test_damaged_files_are_refused(code: bytes):
    for end in range(0, len(code) - 1, 7):
        with pytest.raises(ArtifactError, match="damaged"):
            read_contents(code[:end])
        with pytest.raises(ArtifactError, match="damaged"):
            read_functions(code[:end])
