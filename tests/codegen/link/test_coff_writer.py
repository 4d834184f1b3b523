"""COFF object files that are written are read back whole."""

from __future__ import annotations

from graphc.codegen.link.coff_layout import MANY, CoffFlag, StorageClass
from graphc.codegen.link.coff_reader import read_coff
from graphc.codegen.link.coff_writer import CoffWriter

MACHINE = 0x8664
DATA = CoffFlag.CONTENTS | CoffFlag.READ


def test_what_is_written_is_read():
    writer = CoffWriter(MACHINE)
    first = writer.add_symbol("a_name_of_many_bytes", 1, StorageClass.EXTERNAL, value=3)
    writer.add_symbol("x", 0, StorageClass.EXTERNAL)
    assert writer.add_section(".rdata", DATA, 64, b"12345678", [(0, first, 1)]) == 1
    assert writer.add_section(".bss", CoffFlag.ZEROS | CoffFlag.READ | CoffFlag.WRITE, 4, b"", zeros=12) == 2
    read = read_coff(writer.file())
    data, zeros = read.sections
    assert (data.data, data.alignment, zeros.nbytes, zeros.data, zeros.alignment) == (b"12345678", 64, 12, b"", 4)
    assert [(s.name, s.value, s.section) for s in read.symbols] == [("a_name_of_many_bytes", 3, data), ("x", 0, None)]
    assert [(r.offset, r.symbol.name, r.rule.value) for r in data.relocations] == [
        (0, "a_name_of_many_bytes", "address")
    ]


def test_relocations_beyond_16_bits_are_counted():
    writer = CoffWriter(MACHINE)
    symbol = writer.add_symbol("x", 0, StorageClass.EXTERNAL)
    writer.add_section(".rdata", DATA, 8, bytes(8 * MANY), [(8 * i, symbol, 1) for i in range(MANY)])
    assert len(read_coff(writer.file()).sections[0].relocations) == MANY
