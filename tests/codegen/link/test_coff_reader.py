"""COFF object files: what LLVM writes is read whole; damaged and unknown files are refused with a reason."""

from __future__ import annotations

import random
import struct

import pytest

from graphc.base.errors import ArtifactError, CompileError
from graphc.codegen.link import layout
from graphc.codegen.link.coff_layout import CoffFlag
from graphc.codegen.link.coff_reader import is_coff, read_coff
from graphc.codegen.link.layout import SectionFlag
from tests.codegen.link.objects import built
from tests.codegen.link.windows_objects import coff, dll

FLOATS = "define double @scale(double %x) {{\n  %y = fmul double %x, 2.5\n  ret double %y\n}}\n"
SECTION_OFFSET = 20
"""Offset of the first section header."""


def section_offset(code: bytes | bytearray, name: bytes) -> int:
    """Return the offset of a section's header."""
    count = struct.unpack_from("<H", code, 2)[0]
    starts = (SECTION_OFFSET + 40 * i for i in range(count))
    return next(start for start in starts if code[start : start + 8].rstrip(b"\0") == name)


def test_sections_have_their_permissions():
    sections = {s.name: s for s in read_coff(coff()).sections}
    assert SectionFlag.EXECUTE in sections[".text"].flags and SectionFlag.WRITE not in sections[".text"].flags
    assert SectionFlag.WRITE in sections[".data"].flags and sections[".data"].data
    assert sections[".bss"].nbytes == 400 and not sections[".bss"].data
    assert sections[".rdata"].flags == SectionFlag.IN_MEMORY
    assert ".llvm_addrsig" not in sections and ".drectve" not in sections


def test_symbols_are_local_global_or_shared():
    symbols = {s.name: s for s in read_coff(coff(FLOATS)).symbols}
    assert symbols["scale"].binding == layout.GLOBAL and symbols["scale"].kind == layout.FUNCTION
    constants = [s for name, s in symbols.items() if name.startswith("__real@")]
    assert constants and all(s.binding == layout.WEAK for s in constants)
    internal = {s.name: s for s in read_coff(coff()).symbols}["add"]
    assert internal.binding == layout.LOCAL and internal.section is not None


def test_addends_come_from_the_contents_and_the_type():
    relocations = [r for s in read_coff(coff()).sections for r in s.relocations]
    kinds = {r.rule.name for r in relocations}
    assert {"IMAGE_REL_AMD64_REL32", "IMAGE_REL_AMD64_ADDR64", "IMAGE_REL_AMD64_ADDR32NB"} <= kinds
    calls = [r for r in relocations if r.symbol.name == "memset"]
    assert [r.addend for r in calls] == [-4]


def test_an_address_before_a_constant_counts_from_the_end_of_the_instruction():
    text = "@x = external global i32\ndefine void @f() {{\n  store i32 7, ptr @x\n  ret void\n}}\n"
    (relocation,) = [r for s in read_coff(coff(text)).sections for r in s.relocations if r.symbol.name == "x"]
    assert relocation.rule.value == "relative" and relocation.addend == -8


@pytest.mark.parametrize("text", [None, FLOATS])
def test_truncated_objects_are_refused(text: str | None):
    code = coff() if text is None else coff(text)
    for size in range(len(code)):
        with pytest.raises((ArtifactError, CompileError)):
            read_coff(code[:size])


def test_damaged_objects_raise_no_other_error():
    code, generator, refused = coff(), random.Random(7), 0
    for _ in range(2000):
        damaged = bytearray(code)
        for _ in range(generator.randrange(1, 4)):
            damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
        try:
            dll(bytes(damaged))
        except (ArtifactError, CompileError):
            refused += 1
    assert refused > 300


def test_other_files_are_refused():
    assert is_coff(coff()) and not is_coff(built("sse2")) and not is_coff(b"")
    with pytest.raises(ArtifactError, match="begins with 7f 45"):
        read_coff(built("sse2"))
    with pytest.raises(CompileError, match=r"more than 65,279 sections"):
        read_coff(b"\0\0\xff\xff" + bytes(100))


def test_an_unknown_relocation_is_named():
    code = bytearray(coff())
    start = section_offset(code, b".text")
    relocations = struct.unpack_from("<I", code, start + 24)[0]
    struct.pack_into("<H", code, relocations + 8, 2)
    with pytest.raises(CompileError, match=r"the relocation 2 of \w+ in \.text is unknown"):
        read_coff(bytes(code))


def test_types_of_relocations_tell_how_far_behind_them_instructions_end():
    code = bytearray(coff())
    start = section_offset(code, b".text")
    offset = struct.unpack_from("<I", code, start + 24)[0]
    before = read_coff(bytes(code)).sections[0].relocations[0]
    assert before.rule.name == "IMAGE_REL_AMD64_REL32"
    struct.pack_into("<H", code, offset + 8, 9)
    after = read_coff(bytes(code)).sections[0].relocations[0]
    assert after.rule.name == "IMAGE_REL_AMD64_REL32_5" and after.addend == before.addend - 5


def test_weak_and_common_symbols_are_refused():
    with pytest.raises(CompileError, match="weak or common"):
        read_coff(coff("@x = common global i32 0\n"))
    with pytest.raises(CompileError, match="weak or common"):
        read_coff(coff("declare extern_weak void @f()\ndefine void @g() {{\n  call void @f()\n  ret void\n}}\n"))


def test_a_count_beyond_16_bits_is_in_the_first_relocation():
    items = 70_000
    code = coff(f"@x = external global i32\n@t = constant [{items} x ptr] [{', '.join(['ptr @x'] * items)}]\n")
    section = next(s for s in read_coff(code).sections if s.name == ".rdata" and s.nbytes)
    assert CoffFlag.MORE_RELOCATIONS in CoffFlag(
        struct.unpack_from("<I", code, section_offset(code, b".rdata") + 36)[0]
    )
    assert len(section.relocations) == items
