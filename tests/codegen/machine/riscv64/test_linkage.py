"""Relocations of riscv64: values end up in the scattered bits of instructions whose encodings are known."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.riscv64.linkage import LINKAGE

ENCODED = [
    ("R_RISCV_BRANCH", 0x00000063, 8, 0x00000463),  # beq x0, x0, .+8
    ("R_RISCV_BRANCH", 0x00000063, -4, 0xFE000EE3),  # beq x0, x0, .-4
    ("R_RISCV_JAL", 0x0000006F, 2048, 0x0010006F),  # jal x0, .+2048
    ("R_RISCV_JAL", 0x0000006F, -4, 0xFFDFF06F),  # jal x0, .-4
    ("R_RISCV_RVC_JUMP", 0xA001, 4, 0xA011),  # c.j .+4
    ("R_RISCV_RVC_JUMP", 0xA001, -2, 0xBFFD),  # c.j .-2
    ("R_RISCV_RVC_BRANCH", 0xC101, 8, 0xC501),  # c.beqz a0, .+8
    ("R_RISCV_PCREL_HI20", 0x00000517, 0x1800, 0x00002517),  # auipc a0, 2
    ("R_RISCV_PCREL_LO12_I", 0x00050513, 0x1800, 0x80050513),  # addi a0, a0, -2048
    ("R_RISCV_PCREL_LO12_S", 0x00A53023, 0x1018, 0x00A53C23),  # sd a0, 24(a0)
    ("R_RISCV_CALL_PLT", 0x000080E700000097, 0x1004, 0x004080E700001097),  # auipc ra, 1; jalr 4(ra)
    ("R_RISCV_ADD32", 5, 7, 12),
    ("R_RISCV_SUB32", 5, 7, -2),
]


@pytest.mark.parametrize(("name", "before", "value", "after"), ENCODED)
def test_a_value_stands_where_the_instruction_has_it(name: str, before: int, value: int, after: int):
    (how,) = (how for how in LINKAGE.relocations.values() if how.name == name)
    assert how.fits(value) and how.patch(before, value) == after


def test_the_last_addresses_that_two_parts_reach():
    (how,) = (how for how in LINKAGE.relocations.values() if how.name == "R_RISCV_PCREL_HI20")
    assert how.fits((1 << 31) - 2049) and not how.fits((1 << 31) - 2048)


def test_code_that_a_linker_is_to_shorten_is_not_known():
    assert "R_RISCV_ALIGN" not in {how.name for how in LINKAGE.relocations.values()}
