"""Relocations of aarch64: values end up in the bits of instructions whose encodings are known."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.aarch64.linkage import LINKAGE

ENCODED = [
    ("R_AARCH64_CALL26", 0x94000000, -4, 0x97FFFFFF),  # bl .-4
    ("R_AARCH64_JUMP26", 0x14000000, 8, 0x14000002),  # b .+8
    ("R_AARCH64_CONDBR19", 0x54000000, 8, 0x54000040),  # b.eq .+8
    ("R_AARCH64_TSTBR14", 0x36000000, 8, 0x36000040),  # tbz w0, #0, .+8
    ("R_AARCH64_ADR_PREL_LO21", 0x10000000, 5, 0x30000020),  # adr x0, .+5
    ("R_AARCH64_ADR_PREL_PG_HI21", 0x90000000, 0x1000, 0xB0000000),  # adrp x0, .+4096
    ("R_AARCH64_ADR_PREL_PG_HI21", 0x90000000, -0x1000, 0xF0FFFFE0),  # adrp x0, .-4096
    ("R_AARCH64_ADD_ABS_LO12_NC", 0x91000000, 0x5123, 0x91048C00),  # add x0, x0, #0x123
    ("R_AARCH64_LDST8_ABS_LO12_NC", 0x39400000, 0x1001, 0x39400400),  # ldrb w0, [x0, #1]
    ("R_AARCH64_LDST16_ABS_LO12_NC", 0x79400000, 0x1002, 0x79400400),  # ldrh w0, [x0, #2]
    ("R_AARCH64_LDST32_ABS_LO12_NC", 0xB9400000, 0x1004, 0xB9400400),  # ldr w0, [x0, #4]
    ("R_AARCH64_LDST64_ABS_LO12_NC", 0xF9400000, 0x1008, 0xF9400400),  # ldr x0, [x0, #8]
    ("R_AARCH64_LDST128_ABS_LO12_NC", 0x3DC00000, 0x1010, 0x3DC00400),  # ldr q0, [x0, #16]
    ("R_AARCH64_LD64_GOT_LO12_NC", 0xF9400000, 0x1008, 0xF9400400),
    ("R_AARCH64_PREL32", 0xAAAAAAAA, -2, -2),
]


@pytest.mark.parametrize(("name", "before", "value", "after"), ENCODED)
def test_a_value_stands_where_the_instruction_has_it(name: str, before: int, value: int, after: int):
    (how,) = (how for how in LINKAGE.relocations.values() if how.name == name)
    assert how.fits(value) and how.patch(before, value) == after
    assert how.patch(how.patch(before, 0), value) == after, "what stood there before is replaced"


def test_a_branch_reaches_128_mebibytes():
    (how,) = (how for how in LINKAGE.relocations.values() if how.name == "R_AARCH64_CALL26")
    assert how.fits((1 << 27) - 4) and not how.fits(1 << 27)
