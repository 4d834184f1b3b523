"""File of a macOS library: segments on pages of their own, and a signature of all of them."""

from __future__ import annotations

import hashlib
import struct

import pytest

from graphc.base.errors import CompileError
from graphc.codegen.link.layout import SectionFlag, SectionType
from graphc.codegen.link.macho.image import MachoImage
from graphc.codegen.link.macho.shared import link_dylib
from graphc.codegen.link.parts import OutputSection, Segment
from graphc.codegen.link.segments import SegmentFlag
from graphc.codegen.machine.linkage import macho_linkage_of
from tests.codegen.link.macho.macos_objects import TARGETS, dylib, load_commands, macho

CODE = "define void @f() {{\n  ret void\n}}\n"


def test_no_segment_is_writeable_and_executable_and_pages_are_separate():
    for target, page in zip(TARGETS, (16384, 4096), strict=True):
        rows = [
            struct.unpack_from("<16s4Q4I", data, 8)
            for kind, data in load_commands(dylib(target=target))
            if kind == 0x19
        ]
        assert [row[0].rstrip(b"\0") for row in rows] == [b"__TEXT", b"__DATA_CONST", b"__DATA", b"__LINKEDIT"]
        assert [row[6] for row in rows] == [5, 3, 3, 1] and rows[1][8] == 0x10
        assert all(row[1] % page == row[3] % page == 0 for row in rows)
        ends = [row[1] + row[2] for row in rows]
        assert [row[1] for row in rows] == [0, *ends[:-1]]


@pytest.mark.parametrize("target", TARGETS)
def test_the_signature_covers_the_file_up_to_itself(target: str):
    library = dylib(target=target)
    (command,) = [data for kind, data in load_commands(library) if kind == 0x1D]
    start, nbytes = struct.unpack_from("<II", command, 8)
    assert start % 16 == 0 and start + nbytes == len(library)
    directory = library[start + 24 :]
    hashes, _, _, pages, limit = struct.unpack_from(">5I", directory, 16)
    assert limit == start and pages == -(-start // 4096)
    for page in range(pages):
        digest = hashlib.sha256(library[4096 * page : min(4096 * (page + 1), start)]).digest()
        assert directory[hashes + 32 * page :][:32] == digest


def test_a_library_beyond_two_gigabytes_is_refused():
    with pytest.raises(CompileError, match="the library would take"):
        link_dylib([macho(text="@x = global [2200000000 x i8] zeroinitializer\n")], ["x"], name="net.dylib")


def test_a_library_without_data_has_no_segment_for_it():
    library = link_dylib([macho(text=CODE)], ["f"], name="net.dylib")
    names = [data[8:24].rstrip(b"\0") for kind, data in load_commands(library) if kind == 0x19]
    assert names == [b"__TEXT", b"__LINKEDIT"]


def test_more_sections_than_symbols_can_name_are_refused():
    linkage, flags = macho_linkage_of(0x100000C), SectionFlag.IN_MEMORY
    assert linkage is not None
    parts = [OutputSection(f"__TEXT,__s{i}", SectionType.CONTENTS, flags, []) for i in range(256)]
    with pytest.raises(CompileError, match="256 sections, at most 255 fit"):
        MachoImage(linkage, "net.dylib", {"__TEXT": Segment(SegmentFlag.READ, parts)})
