"""Object code is compared with the assembly that was looked at."""

from __future__ import annotations

import platform
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from graphc.codegen.llvm.build import assemble, build_object, emit_assembly
from graphc.codegen.machine.target import host_target, target_named
from graphc.codegen.machine.x86_64.steps import READER
from graphc.codegen.proof.assembly import read_assembly
from graphc.codegen.proof.object_code import (
    ObjectCode,
    check_layout,
    check_same,
    marked,
    note_filling,
    read_object_code,
)
from graphc.errors import ArtifactError, CompileError, RealtimeError

TEXT = """
declare void @outside()
define internal void @k(ptr %p) noinline {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr float, ptr %p, i64 %i
  %x = load float, ptr %at
  %y = fadd float %x, 0x3FB99999A0000000
  store float %y, ptr %at
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {count}
  br i1 %more, label %loop, label %end
end:
  ret void
}}
define void @run(ptr %p) {{
  call void @k(ptr %p)
  call void @outside()
  ret void
}}
"""
needs_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="assembly of x86-64 is read on x86-64 only")


def text(count: int = 100) -> str:
    return TEXT.format(count=count)


def test_functions_and_symbols_from_elsewhere_are_found():
    code = read_object_code(build_object(text(), target_named("neon")))
    assert code.functions.keys() == {"k", "run"} and "outside" in code.undefined
    assert code.code_bytes == sum(size for _, size in code.functions.values())


@needs_x86
@pytest.mark.parametrize("name", ["sse2", "avx2", "avx512"])
def test_assembly_gives_the_object_code_again(name: str):
    target = target_named(name)
    code, assembly = read_object_code(build_object(text(), target)), emit_assembly(text(), target)
    check_same(code, read_object_code(assemble(assembly, target)), READER)
    check_same(code, read_object_code(assemble(marked(assembly), target)), READER)


@needs_x86
def test_assembly_of_something_else_does_not():
    target = target_named("avx2")
    code = read_object_code(build_object(text(), target))
    for other in (emit_assembly(text(101), target), emit_assembly(text().replace("@outside", "@other"), target)):
        with pytest.raises(RealtimeError, match=r"other bytes in \.text"):
            check_same(code, read_object_code(assemble(other, target)), READER)


@needs_x86
def test_what_fills_the_room_before_a_loop_is_counted():
    target = target_named("avx2")
    assembly = emit_assembly(text(), target)
    functions = read_assembly(assembly)
    note_filling(read_object_code(build_object(text(), target)), assemble(marked(assembly), target), functions, READER)
    assert [n for f in functions for n in f.filling.values()] == [1]


def test_places_of_functions_are_compared_where_instructions_have_one_length():
    target = target_named("neon")
    machine = target.reader
    assert machine is not None
    code, functions = read_object_code(build_object(text(), target)), read_assembly(emit_assembly(text(), target), "//")
    check_layout(code, functions, machine)
    functions[0].lines.append(functions[0].lines[-1])
    with pytest.raises(RealtimeError, match="has another address or length in the object code"):
        check_layout(code, functions, machine)
    with pytest.raises(RealtimeError, match="other functions"):
        check_layout(replace(code, functions={}), functions, machine)


@pytest.mark.parametrize("name", ["cortex-m4", "cortex-m7", "cortex-m55"])
def test_instructions_are_counted_where_they_have_two_lengths(name: str):
    target = target_named(name)
    machine = target.reader
    assert machine is not None
    given = f'target triple = "{target.triple}"\n{text()}'
    code, assembly = read_object_code(build_object(given, target)), emit_assembly(given, target)
    assert code.functions.keys() == {"k", "run"} and "outside" in code.undefined
    functions = read_assembly(assembly, machine.comment)
    check_layout(code, functions, machine)
    assert sum(n for f in functions for n in f.filling.values()) < 4
    for function in functions:
        left = (
            replace(function, lines=function.lines[:-1]),
            replace(function, lines=[*function.lines, function.lines[0]]),
        )
        for changed in left:
            with pytest.raises(
                RealtimeError, match=f"@{function.name} of the analyzed assembly has other instructions"
            ):
                check_layout(code, [changed if f is function else f for f in functions], machine)
    narrow = next(n for n, x in enumerate(code.instructions["k"]) if len(x) == 2)
    line = functions[0].lines[narrow]
    functions[0].lines[narrow] = replace(line, mnemonic=f"{line.mnemonic}.w")
    with pytest.raises(RealtimeError, match="has other instructions"):
        check_layout(code, functions, machine)


def test_padding_between_instructions_is_counted():
    target = target_named("cortex-m7")
    machine = target.reader
    assert machine is not None
    (function,) = read_assembly("\t.type\tk,%function\nk:\n\tadds\tr0, #1\n\t.p2align\t3\n.L:\n\tb\t.L\n", "@")
    nop = b"\x00\xbf"
    code = ObjectCode({}, {"k": (0, 10)}, frozenset(), {"k": (b"\x01\x30", nop, nop, nop, b"\xfe\xe7")})
    check_layout(code, [function], machine)
    assert function.filling[1] == 3
    function.aligned.clear()
    with pytest.raises(RealtimeError, match="has other instructions"):
        check_layout(code, [function], machine)


@pytest.mark.parametrize("name", ["cortex-m4", "cortex-m7"])  # the assembler of Debian 12 does not know the last one
def test_another_assembler_gives_the_object_code_of_a_microcontroller(name: str, tmp_path: Path):
    assembler = shutil.which("arm-none-eabi-as")
    if assembler is None:
        pytest.skip("arm-none-eabi-as is not installed")
    target = target_named(name)
    given = f'target triple = "{target.triple}"\n{text()}'
    (tmp_path / "k.s").write_text(emit_assembly(given, target))
    subprocess.run([assembler, "k.s", "-o", "k.o"], cwd=tmp_path, check=True)
    again, code = read_object_code((tmp_path / "k.o").read_bytes()), read_object_code(build_object(given, target))
    assert again.instructions["k"] == code.instructions["k"] and again.functions == code.functions


def test_what_is_no_object_code_is_refused():
    with pytest.raises(ArtifactError, match="not a 64-bit little-endian ELF"):
        read_object_code(b"!<arch>\n")
    with pytest.raises(ArtifactError, match="damaged"):
        read_object_code(build_object(text(), target_named("neon"))[:500])


def test_assembly_of_other_architectures_is_not_read():
    other = "neon" if host_target().triple.startswith("x86_64") else "sse2"
    with pytest.raises(CompileError, match="this machine cannot assemble"):
        assemble("", target_named(other))
