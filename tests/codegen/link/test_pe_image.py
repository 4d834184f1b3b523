"""Files of Windows libraries: headers as other tools read them, sections on separate pages, the checksum."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pytest

from graphc.base.errors import CompileError
from graphc.codegen.link.coff_layout import CoffFlag
from graphc.codegen.link.layout import SectionFlag
from graphc.codegen.link.pe_image import PAGE, ImageSection, checksum, place_sections
from graphc.codegen.link.reader import Section
from tests.codegen.link.objects import output
from tests.codegen.link.windows_objects import dll, inspector

_CHECKSUM_OFFSET = 64 + 4 + 20 + 64


def zeros(nbytes: int) -> Section:
    return Section(".bss", SectionFlag.IN_MEMORY, 16, nbytes, b"")


def test_other_tools_read_the_headers(tmp_path: Path):
    path = tmp_path / "net.dll"
    path.write_bytes(dll())
    text = output(inspector(), "--file-headers", "--sections", path)
    for flag in ("HIGH_ENTROPY_VA", "DYNAMIC_BASE", "NX_COMPAT", "IMAGE_FILE_DLL", "LARGE_ADDRESS_AWARE"):
        assert flag in text
    names = re.findall(r"^    Name: (\S+)", text, re.MULTILINE)
    assert names == [".text", ".rdata", ".data", ".pdata", ".reloc"]
    for block in text.split("Section {")[1:]:
        assert not ("MEM_WRITE" in block and "MEM_EXECUTE" in block)


def test_the_checksum_is_the_sum_of_words_with_carries_and_the_size():
    data = bytearray(dll())
    stored = struct.unpack_from("<I", data, _CHECKSUM_OFFSET)[0]
    struct.pack_into("<I", data, _CHECKSUM_OFFSET, 0)
    total = 0
    for word in np.frombuffer(data, "<u2").tolist():
        total += word
        total = (total & 0xFFFF) + (total >> 16)
    assert stored == total + len(data) == checksum(data)
    assert checksum(b"\0\0") == 2 and checksum(b"\xff\xff") == 0xFFFF + 2


def test_zeros_take_memory_and_no_bytes_of_the_file():
    data = Section(".data", SectionFlag.IN_MEMORY, 8, 5, b"12345")
    section = ImageSection(".data", CoffFlag.READ, [zeros(10_000), data])
    place_sections([section])
    assert section.contents == b"12345".ljust(512, b"\0")
    assert section.nbytes == 16 + 10_000 and data.address == section.address == PAGE


def test_sections_start_on_pages_and_an_image_has_a_limit():
    first, second = (ImageSection(".data", CoffFlag.READ, [zeros(PAGE + 1)]) for _ in range(2))
    place_sections([first, second])
    assert (first.address, second.address) == (PAGE, 3 * PAGE)
    with pytest.raises(CompileError, match="at most 2146435072 are possible"):
        place_sections([ImageSection(".bss", CoffFlag.READ, [zeros((1 << 31) - PAGE)])])
