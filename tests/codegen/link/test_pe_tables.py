"""Tables of Windows libraries: exports, base relocations and functions."""

from __future__ import annotations

import struct

from graphc.codegen.link.pe_tables import base_relocations, export_bytes, export_directory, sorted_functions


def test_exports_point_to_their_names():
    names, start = ["alpha", "beta"], 0x2000
    table = export_directory("net.dll", names, [0x1010, 0x1000], start)
    assert len(table) == export_bytes("net.dll", names)
    *_, library, base, count, named, addresses, texts, ordinals = struct.unpack_from("<IIHHIIIIIII", table)

    def text(address: int) -> str:
        return table[address - start :].partition(b"\0")[0].decode()

    assert (text(library), base, count, named) == ("net.dll", 1, 2, 2)
    assert [text(a) for a in struct.unpack_from("<2I", table, texts - start)] == names
    assert struct.unpack_from("<2I", table, addresses - start) == (0x1010, 0x1000)
    assert struct.unpack_from("<2H", table, ordinals - start) == (0, 1)


def test_base_relocations_are_blocks_of_pages_of_whole_words():
    table = base_relocations([0x3008, 0x2010, 0x2000, 0x2018], 10)
    assert struct.unpack_from("<II", table) == (0x2000, 16)
    assert struct.unpack_from("<4H", table, 8) == (0xA000, 0xA010, 0xA018, 0)
    assert struct.unpack_from("<II", table, 16) == (0x3000, 12)
    assert struct.unpack_from("<2H", table, 24) == (0xA008, 0)
    assert base_relocations([], 10) == struct.pack("<II", 0, 8)


def test_functions_are_sorted_by_their_start():
    records = [struct.pack("<III", start, start + 8, 0) for start in (0x1100, 0x1001, 0x20000)]
    assert sorted_functions(b"".join(records)) == b"".join([records[1], records[0], records[2]])
