"""Object code is compared with the assembly that was looked at."""

from __future__ import annotations

import platform
from dataclasses import replace

import pytest

from graphc.codegen.llvm.build import assemble, build_object, emit_assembly
from graphc.codegen.machine.target import host_target, target_named
from graphc.codegen.machine.x86_64.steps import READER
from graphc.codegen.proof.assembly import read_assembly
from graphc.codegen.proof.object_code import check_layout, check_same, marked, note_filling, read_object_code
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


def test_what_is_no_object_code_is_refused():
    with pytest.raises(ArtifactError, match="not a 64-bit little-endian ELF"):
        read_object_code(b"!<arch>\n")
    with pytest.raises(ArtifactError, match="damaged"):
        read_object_code(build_object(text(), target_named("neon"))[:500])


def test_assembly_of_other_architectures_is_not_read():
    other = "neon" if host_target().triple.startswith("x86_64") else "sse2"
    with pytest.raises(CompileError, match="this machine cannot assemble"):
        assemble("", target_named(other))
