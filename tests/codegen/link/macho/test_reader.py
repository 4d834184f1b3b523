"""Mach-O object files: what LLVM writes is read whole; damaged and unknown files are refused with a reason."""

from __future__ import annotations

import random
import struct

import pytest

from graphc.base.errors import ArtifactError, CompileError
from graphc.codegen.link import layout
from graphc.codegen.link.layout import SectionFlag
from graphc.codegen.link.macho.layout import HEADER, SECTION, SEGMENT
from graphc.codegen.link.macho.reader import is_macho, read_macho
from tests.codegen.link.macho.macos_objects import TARGETS, dylib, load_commands, macho
from tests.codegen.link.objects import built

SWITCH = """\
target triple = "{triple}"
declare void @use(i32)
define void @choose(i32 %x) nounwind {{
  switch i32 %x, label %end [ i32 0, label %a i32 1, label %b i32 2, label %c i32 3, label %d i32 4, label %e ]
a:
  call void @use(i32 10)
  ret void
b:
  call void @use(i32 21)
  ret void
c:
  call void @use(i32 32)
  ret void
d:
  call void @use(i32 43)
  ret void
e:
  call void @use(i32 54)
  ret void
end:
  ret void
}}
"""
DISTANCE = """\
@a = constant i32 1
@b = constant [3 x i32] [i32 1, i32 2,
  i32 trunc (i64 sub (i64 ptrtoint (ptr @a to i64), i64 ptrtoint (ptr @b to i64)) to i32)]
"""
POINTERS = """\
@x = external global i32
@w = global [2 x i32] [i32 5, i32 6]
@inside = global ptr getelementptr (i8, ptr @w, i64 4)
@f = global ptr @x
"""
ADDENDS = """\
@room = external hidden global [4096 x i32]
define i32 @far() nounwind {{
  %value = load i32, ptr getelementptr (i32, ptr @room, i64 1000)
  ret i32 %value
}}
"""


def test_sections_have_their_permissions():
    sections = {s.name: s for s in read_macho(macho()).sections}
    assert SectionFlag.EXECUTE in sections["__TEXT,__text"].flags
    assert SectionFlag.WRITE not in sections["__TEXT,__text"].flags
    assert SectionFlag.WRITE in sections["__DATA,__data"].flags and sections["__DATA,__data"].data
    assert sections["__DATA,__bss"].nbytes == 400 and not sections["__DATA,__bss"].data
    assert not any(name.startswith("__LD") for name in sections)
    constants = {s.name: s for s in read_macho(macho("macos-avx2")).sections}["__TEXT,__const"]
    assert constants.flags == SectionFlag.IN_MEMORY and constants.nbytes == 24


@pytest.mark.parametrize("target", TARGETS)
def test_symbols_are_local_global_or_undefined(target: str):
    symbols = {s.name: s for s in read_macho(macho(target)).symbols}
    assert symbols["call"].binding == layout.GLOBAL and symbols["call"].kind == layout.FUNCTION
    assert symbols["add"].binding == layout.LOCAL and symbols["seen"].kind == layout.OBJECT
    assert symbols["memset"].section is None
    weak = read_macho(macho(target, "define linkonce_odr hidden void @f() {{\n  ret void\n}}\n@g = global ptr @f\n"))
    assert {s.name: (s.binding, s.hidden) for s in weak.symbols}["f"] == (layout.WEAK, True)


def test_addends_come_from_their_own_relocations_and_the_contents():
    relocations = [r for s in read_macho(macho(text=ADDENDS)).sections for r in s.relocations]
    assert [(r.rule.name, r.addend) for r in relocations] == [
        ("ARM64_RELOC_PAGEOFF12", 4000),
        ("ARM64_RELOC_PAGE21", 4000),
    ]
    (signed,) = [r for s in read_macho(macho("macos-avx2", ADDENDS)).sections for r in s.relocations]
    assert (signed.rule.name, signed.addend) == ("X86_64_RELOC_SIGNED", 3996)
    words = [r for s in read_macho(macho(text=POINTERS)).sections for r in s.relocations]
    assert {(r.symbol.name, r.addend) for r in words} == {("w", 4), ("x", 0)}


def test_an_address_before_a_constant_counts_from_the_end_of_the_instruction():
    text = "@x = external hidden global i32\ndefine void @f() {{\n  store i32 7, ptr @x\n  ret void\n}}\n"
    (relocation,) = [r for s in read_macho(macho("macos-avx2", text)).sections for r in s.relocations]
    assert relocation.rule.name == "X86_64_RELOC_SIGNED_4" and relocation.addend == -8


def test_a_relocation_to_a_section_has_a_symbol_at_its_start():
    relocations = [r for s in read_macho(macho("macos-avx2")).sections for r in s.relocations]
    to_section = [r for r in relocations if r.symbol.kind == layout.OF_SECTION]
    assert {(r.symbol.section.name, r.addend + 4) for r in to_section if r.symbol.section} == {
        ("__TEXT,__const", offset) for offset in (0, 8, 16)
    }


@pytest.mark.parametrize("target", TARGETS)
def test_differences_in_a_section_are_relative_to_the_location(target: str):
    (relocation,) = [r for s in read_macho(macho(target, DISTANCE)).sections for r in s.relocations]
    assert relocation.rule.value == "relative" and relocation.rule.nbytes == 4
    value = relocation.symbol.value + relocation.addend - relocation.offset
    symbols = {s.name: s.value for s in read_macho(macho(target, DISTANCE)).symbols}
    assert value == symbols["a"] - symbols["b"]


def test_half_a_difference_is_refused():
    code = bytearray(macho(TARGETS[0], DISTANCE))
    sections = range(HEADER.size + SEGMENT.size, len(code), SECTION.size)
    start = next(start for start in sections if SECTION.unpack_from(code, start)[7] == 2)
    *front, _, flags, x, y, z = SECTION.unpack_from(code, start)
    SECTION.pack_into(code, start, *front, 1, flags, x, y, z)
    with pytest.raises(ArtifactError, match=r"the relocations of \S+ end within a pair"):
        read_macho(bytes(code))


def test_a_difference_of_two_sections_is_refused():
    text = DISTANCE.replace("@a = constant", "@a = global").replace(
        "ptr @a to i64), i64 ptrtoint (ptr @b", "ptr @b to i64), i64 ptrtoint (ptr @a"
    )
    with pytest.raises(CompileError, match="subtracts the address of a, which is in another section"):
        read_macho(macho(text=text))


@pytest.mark.parametrize("target", TARGETS)
def test_truncated_objects_are_refused(target: str):
    code = macho(target)
    for size in range(0, len(code), 3):
        with pytest.raises((ArtifactError, CompileError)):
            dylib(code[:size], target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_damaged_objects_raise_no_other_error(target: str):
    code, generator, refused = macho(target), random.Random(7), 0
    for _ in range(1000):
        damaged = bytearray(code)
        for _ in range(generator.randrange(1, 4)):
            damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
        try:
            dylib(bytes(damaged), target=target)
        except (ArtifactError, CompileError):
            refused += 1
    assert refused > 150


def test_a_load_command_without_an_end_is_refused():
    code = bytearray(macho())
    struct.pack_into("<I", code, 16, 1 << 31)
    struct.pack_into("<I", code, 32 + 4, 0)
    with pytest.raises(ArtifactError, match="a load command of 0 bytes"):
        read_macho(bytes(code))


def test_other_files_are_refused():
    assert is_macho(macho()) and not is_macho(built("neon")) and not is_macho(b"")
    with pytest.raises(ArtifactError, match="begins with 7f454c46"):
        read_macho(built("neon"))
    with pytest.raises(ArtifactError, match="not Mach-O of a known machine"):
        read_macho(dylib())


def test_an_unknown_relocation_is_named():
    code = bytearray(macho())
    segment = next(data for command, data in load_commands(code) if command == 0x19)
    relocations = struct.unpack_from("<I", segment, 72 + 56)[0]
    struct.pack_into("<I", code, relocations + 4, struct.unpack_from("<I", code, relocations + 4)[0] | 0xF0000000)
    with pytest.raises(CompileError, match=r"the relocation 0xf5 in __TEXT,__text is unknown"):
        read_macho(bytes(code))


def test_weak_and_common_symbols_are_refused():
    with pytest.raises(CompileError, match="weak, common"):
        read_macho(macho(text="@x = common global i32 0\n"))
    with pytest.raises(CompileError, match="weak, common"):
        read_macho(macho(text="declare extern_weak void @f()\ndefine void @g() {{\n  call void @f()\n  ret void\n}}\n"))


def test_variables_of_threads_are_refused():
    with pytest.raises(CompileError, match="cannot be linked"):
        read_macho(macho(text="@x = thread_local global i32 1\n"))
