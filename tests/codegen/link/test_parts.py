"""Laying out: parts by permission, pages that no two permissions share, zeros at the end."""

from __future__ import annotations

from itertools import pairwise

import pytest

from graphc.codegen.link.layout import SectionFlag, SectionType
from graphc.codegen.link.parts import OutputSection, place_all, segments_of, sort_sections
from graphc.codegen.link.reader import Section
from graphc.errors import CompileError

READ = SectionFlag.IN_MEMORY
CODE, WRITE = READ | SectionFlag.EXECUTE, READ | SectionFlag.WRITE


def section(name: str, flags: SectionFlag, nbytes: int, alignment: int = 1, zeros: bool = False) -> Section:
    return Section(name, flags, alignment, nbytes, b"" if zeros else bytes(nbytes))


def some() -> list[Section]:
    return [
        section(".text", CODE, 5),
        section(".text.f", CODE, 7, 16),
        section(".rodata.cst8", READ, 8, 8),
        section(".bss", WRITE, 100, 16, zeros=True),
        section(".data", WRITE, 4, 4),
        section(".data.rel.ro", WRITE, 8, 8),
        section(".text", CODE, 0),
    ]


def test_sections_of_a_kind_are_one_part():
    sorting = sort_sections(some())
    assert [(p.name, len(p.sections)) for p in sorting.execute] == [(".text", 2)]
    assert [p.name for p in sorting.read] == [".rodata"] and [p.name for p in sorting.sealed] == [".data.rel.ro"]
    assert [(p.name, p.is_zeros) for p in sorting.write] == [(".data", False), (".bss", True)]


@pytest.mark.parametrize("page", [4096, 65536])
def test_segments_share_no_page_and_lie_in_the_file_as_in_memory(page: int):
    data = OutputSection(".rodata.data.w", SectionType.CONTENTS, READ, [section(".rodata.data.w", READ, 10, 4096)])
    segments = segments_of(sort_sections(some()), [data])
    end = place_all(segments, 64, page)
    assert len(segments) == 5 and end == segments[-1].offset + segments[-1].file_bytes
    for before, after in pairwise(segments):
        assert (before.address + before.memory_bytes - 1) // page < after.address // page
    for segment in segments:
        assert segment.address % page == segment.offset % page
        for part in segment.parts:
            assert part.address - segment.address == part.offset - segment.offset
            assert all(s.address % s.alignment == 0 for s in part.sections)
    sealed = next(s for s in segments if s.is_sealed)
    assert (sealed.address + sealed.memory_bytes) % page == 0, "the loader protects whole pages"
    assert data.address % 4096 == data.offset % 4096 == 0
    zeros = segments[3]
    assert zeros.memory_bytes > zeros.file_bytes == 4


def test_contents_have_gaps_between_sections():
    part = OutputSection(".text", SectionType.CONTENTS, CODE, [section("a", CODE, 5), section("b", CODE, 7, 16)])
    part.place(3, 0x1003)
    assert (part.address, part.offset, part.nbytes) == (0x1010, 0x10, 23)
    assert len(b"".join(part.contents)) == 23


def test_nothing_may_be_written_to_and_executed():
    with pytest.raises(CompileError, match=r"\.both may be written to and executed"):
        sort_sections([section(".both", CODE | WRITE, 1)])
