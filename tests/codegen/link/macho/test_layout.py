"""Records of Mach-O have the sizes of Apple's headers, and names and kinds of relocations keep their parts."""

from __future__ import annotations

from graphc.codegen.link.macho import layout as records


def test_records_have_their_sizes():
    all_records = records.HEADER, records.SEGMENT, records.SECTION, records.SYMBOL, records.RELOCATION, records.SYMBOLS
    assert [record.size for record in all_records] == [32, 72, 80, 16, 8, 24]
    assert records.DYNAMIC_SYMBOLS.size == 80 and len(records.build_version()) == 24


def test_names_of_c_have_an_underscore_and_others_come_back():
    assert records.to_c("_call") == "call" and records.from_c("call") == "_call"
    for symbol in ("_call", "__call", "ltmp0", "_"):
        assert records.from_c(records.to_c(symbol)) == symbol


def test_the_kind_of_a_relocation_leaves_out_whether_it_names_a_symbol():
    # ARM64_RELOC_PAGE21 (3) of four bytes, relative to the location.
    by_symbol = 7 | 1 << 24 | 2 << 25 | 1 << 27 | 3 << 28
    by_section = by_symbol & ~records.BY_SYMBOL
    assert records.kind_of(by_symbol) == records.kind_of(by_section) == 0x35
    assert records.relocation_record(16, 7, 0x35) == records.RELOCATION.pack(16, by_symbol)


def test_sections_have_the_name_of_their_segment():
    assert records.section_names("__TEXT,__text") == (b"__text".ljust(16, b"\0"), b"__TEXT".ljust(16, b"\0"))
