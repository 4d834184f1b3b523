"""Records of ELF files: their sizes are those of the ABI, names stand once."""

from __future__ import annotations

from graphc.codegen.link import layout


def test_records_have_the_sizes_of_the_abi():
    sizes = [r.size for r in (layout.HEADER, layout.SEGMENT, layout.SECTION, layout.SYMBOL, layout.RELOCATION)]
    assert sizes == [64, 56, 64, 24, 24]
    assert layout.DYNAMIC.size == 16 and len(layout.IDENTIFICATION) == 16


def test_a_name_stands_once():
    names = layout.Strings()
    assert names.offset("") == 0
    first = names.offset("main")
    assert names.offset("other") != first == names.offset("main")
    assert names.data == b"\0main\0other\0"


def test_offsets_are_rounded_up():
    assert [layout.align(n, 8) for n in (0, 1, 8, 9)] == [0, 8, 8, 16]


def test_records_put_two_numbers_into_a_word():
    assert layout.symbol_record(1, layout.FUNCTION, 3, 4, 5, layout.WEAK, layout.HIDDEN)[4:6] == bytes([0x22, 2])
    assert layout.RELOCATION.unpack(layout.relocation_record(8, 3, 7, -1)) == (8, 3 << 32 | 7, -1)
