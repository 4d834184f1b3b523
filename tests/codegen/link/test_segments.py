"""Constants of loaded files, as the system's header file defines them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphc.codegen.link.segments import BIND_NOW, NOW, SegmentFlag, SegmentType, Tag

HEADER = Path("/usr/include/elf.h")
NAMES = {
    "PT_LOAD": SegmentType.LOAD,
    "PT_DYNAMIC": SegmentType.DYNAMIC,
    "PT_NOTE": SegmentType.NOTE,
    "PT_GNU_STACK": SegmentType.STACK,
    "PT_GNU_RELRO": SegmentType.READ_ONLY_LATER,
    "DT_NEEDED": Tag.NEEDED,
    "DT_HASH": Tag.HASH,
    "DT_GNU_HASH": Tag.GNU_HASH,
    "DT_STRTAB": Tag.STRINGS,
    "DT_SYMTAB": Tag.SYMBOLS,
    "DT_RELA": Tag.RELOCATIONS,
    "DT_RELASZ": Tag.RELOCATION_BYTES,
    "DT_RELAENT": Tag.RELOCATION_ENTRY,
    "DT_STRSZ": Tag.STRING_BYTES,
    "DT_SYMENT": Tag.SYMBOL_ENTRY,
    "DT_SONAME": Tag.NAME,
    "DT_FLAGS": Tag.FLAGS,
    "DT_FLAGS_1": Tag.FLAGS_1,
    "DT_RELACOUNT": Tag.RELATIVE_COUNT,
    "DF_BIND_NOW": BIND_NOW,
    "DF_1_NOW": NOW,
}


@pytest.mark.skipif(not HEADER.exists(), reason="this system has no elf.h")
def test_numbers_are_those_of_the_header_file():
    text = HEADER.read_text(encoding="utf-8", errors="replace")
    for name, value in NAMES.items():
        defined = re.search(rf"^#define\s+{name}\s+(\w+)", text, re.MULTILINE)
        assert defined is not None and int(defined[1], 0) == value, name
    assert {*SegmentType, *Tag} - {*NAMES.values()} == {Tag.END}


def test_permissions_are_bits_of_their_own():
    assert [flag.value for flag in SegmentFlag] == [1, 2, 4]
