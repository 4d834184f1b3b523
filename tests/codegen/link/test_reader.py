"""Reading object code: what is needed is found, and a damaged file raises an error that says so."""

from __future__ import annotations

import random
import struct

import pytest

from graphc.codegen.link import layout
from graphc.codegen.link.layout import SectionFlag
from graphc.codegen.link.reader import read_object
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import target_named
from graphc.errors import ArtifactError, CompileError, GraphcError
from tests.codegen.link.objects import TARGETS, built


@pytest.mark.parametrize("name", TARGETS)
def test_sections_symbols_and_relocations_are_found(name: str):
    object_file = read_object(built(name))
    symbols = {s.name: s for s in object_file.symbols if s.name}
    assert symbols["call"].section is not None and symbols["call"].kind == layout.FUNCTION
    assert symbols["count"].binding == layout.LOCAL and symbols["count"].nbytes == 4
    assert symbols["table"].section is None
    zeros = symbols["seen"].section
    assert zeros is not None and zeros.nbytes == 400 and not zeros.data and SectionFlag.WRITE in zeros.flags
    places = [place for section in object_file.sections for place in section.relocations]
    assert {"memset", "fmod", "table"} <= {place.symbol.name for place in places}
    assert not any(section.name.startswith((".eh_frame", ".comment", ".note")) for section in object_file.sections)


@pytest.mark.parametrize("name", TARGETS)
def test_a_file_that_ends_early_is_refused(name: str):
    code = built(name)
    for size in random.Random(7).sample(range(len(code)), 200):
        with pytest.raises(ArtifactError):
            read_object(code[:size])


def test_a_file_with_other_bytes_is_refused_or_read():
    code, choice = built("sse2"), random.Random(8)
    refused = 0
    for _ in range(500):
        changed = bytearray(code)
        changed[choice.randrange(len(code))] = choice.randrange(256)
        try:
            read_object(bytes(changed))
        except GraphcError:
            refused += 1
    assert 0 < refused < 500


def test_what_is_no_object_code_is_refused():
    with pytest.raises(ArtifactError, match="not a 64-bit little-endian ELF"):
        read_object(b"!<arch>\n")
    library = bytearray(built("sse2"))
    struct.pack_into("<H", library, 16, layout.SHARED)
    with pytest.raises(ArtifactError, match="type 3 is not object code"):
        read_object(bytes(library))


def test_a_machine_without_rules_is_refused():
    foreign = bytearray(built("sse2"))
    struct.pack_into("<H", foreign, 18, 8)
    with pytest.raises(CompileError, match="machine 8 cannot be linked"):
        read_object(bytes(foreign))


def test_a_relocation_without_a_meaning_is_named():
    code, result = bytearray(built("sse2")), read_object(built("sse2"))
    place = next(p for s in result.sections for p in s.relocations if p.symbol.name == "memset")
    record = layout.RELOCATION.pack(place.offset, 0, 0)[:8]
    start = next(i for i in range(len(code)) if code[i : i + 8] == record and code[i + 8] == place.kind)
    code[start + 8] = 10  # R_X86_64_32: only where a program lies is known
    with pytest.raises(CompileError, match=r"relocation 10 of memset in \.text"):
        read_object(bytes(code))


def test_memory_of_each_thread_is_refused():
    text = "@own = thread_local global i32 1\ndefine ptr @f() {\n  ret ptr @own\n}\n"
    target = target_named("sse2")
    with pytest.raises(CompileError, match="cannot be linked"):
        read_object(build_object(f'target triple = "{target.triple}"\n{text}', target))
