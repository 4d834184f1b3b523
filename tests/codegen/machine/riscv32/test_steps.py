"""Instructions of 32-bit RISC-V as steps: a register is a word of 32 bits."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.riscv32.steps import READER
from graphc.codegen.machine.step import BranchCondition, InstructionEffects, Line, MemorySlot, Sum
from graphc.codegen.proof.assembly import split_operands


def step(text: str) -> InstructionEffects:
    mnemonic, _, rest = text.partition(" ")
    return READER.step(Line(mnemonic, tuple(split_operands(rest)), 1), frozenset({".L1"}))


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("sw ra, 12(sp)", ((MemorySlot("sp", 12), Sum("ra")),)),
        ("lw a0, 8(sp)", (("a0", Sum(MemorySlot("sp", 8))),)),
        ("lh a0, 8(sp)", (("a0", None),)),
        ("fsw fa0, 0(sp)", ()),
    ],
)
def test_a_word_on_the_stack_keeps_its_value(text: str, moves: tuple):
    assert step(text).moves == moves


def test_branches_compare_32_bits():
    assert step("bltu a0, a1, .L1").compares == BranchCondition(Sum("a0"), Sum("a1"), 32)


@pytest.mark.parametrize(("nop", "count"), [(b"\1\0", 1), (b"\x13\0\0\0", 1), (b"\x13\0", 0)])
def test_padding_is_known(nop: bytes, count: int):
    assert READER.filler is not None and len(READER.filler.findall(nop)) == count
