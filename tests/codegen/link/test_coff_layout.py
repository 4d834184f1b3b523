"""Records of COFF have the sizes that the specification states."""

from __future__ import annotations

from graphc.codegen.link import coff_layout


def test_records_have_their_sizes():
    records = coff_layout.FILE_HEADER, coff_layout.SECTION, coff_layout.SYMBOL, coff_layout.RELOCATION
    assert [record.size for record in records] == [20, 40, 18, 10]
