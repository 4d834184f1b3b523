"""Files of parts: parts that have no place follow behind, the table of sections names them all."""

from __future__ import annotations

import struct

from graphc.codegen.link import layout
from graphc.codegen.link.file import file_pieces, table_part
from graphc.codegen.link.layout import SectionType
from graphc.codegen.machine.x86_64.linkage import LINKAGE


def test_parts_stand_in_the_file_where_the_table_says():
    parts = [
        table_part("a", SectionType.CONTENTS, b"12345"),
        table_part("b", SectionType.SYMBOLS, bytes(24), 24, "c", 1),
        table_part("c", SectionType.STRINGS, b"\0"),
    ]
    data = b"".join(file_pieces(layout.RELOCATABLE, LINKAGE, 3, (), parts, layout.HEADER.size))
    fields = layout.HEADER.unpack_from(data)
    assert fields[1:4] == (layout.RELOCATABLE, 62, 1) and fields[7] == 3
    table, count, names = fields[6], fields[12], fields[13]
    rows = [layout.SECTION.unpack_from(data, table + i * 64) for i in range(count)]
    assert (count, names) == (5, 4) and table + count * 64 == len(data)
    start = rows[names][4]
    found = [data[start + row[0] : data.index(b"\0", start + row[0])].decode() for row in rows]
    assert found == ["", "a", "b", "c", ".shstrtab"]
    assert data[rows[1][4] : rows[1][4] + rows[1][5]] == b"12345"
    assert rows[2][6:8] == (3, 1) and rows[2][4] % 8 == 0 and rows[2][9] == 24
    assert struct.unpack_from("<H", data, 56)[0] == 0, "no segments"
