"""Instructions of riscv64 as steps."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.riscv64.steps import READER
from graphc.codegen.machine.step import BranchCondition, InstructionEffects, Line, MemorySlot, Sum
from graphc.codegen.proof.assembly import split_operands


def step(text: str) -> InstructionEffects:
    mnemonic, _, rest = text.partition(" ")
    return READER.step(Line(mnemonic, tuple(split_operands(rest)), 1), frozenset({".L1"}))


@pytest.mark.parametrize(
    ("text", "kind", "target"),
    [
        ("call k0", "call", "k0"),
        ("jalr a5", "call", ""),
        ("tail k1@plt", "tail", "k1"),
        ("j .L1", "jump", ".L1"),
        ("jr a5", "jump", ""),
        ("bltu a0, a1, .L1", "branch", ".L1"),
        ("ret", "return", ""),
        ("unimp", "stop", ""),
        ("ecall", "system", ""),
        ("amoadd.w.aqrl a0, a1, (a2)", "lock", ""),
        ("lr.d a0, (a1)", "lock", ""),
        ("fmadd.s fa0, fa1, fa2, fa3", "plain", ""),
    ],
)
def test_instructions_say_where_they_go(text: str, kind: str, target: str):
    assert (step(text).kind, step(text).target) == (kind, target)


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("li a1, 37", (("a1", Sum(None, 37)),)),
        ("lui a1, 1", (("a1", Sum(None, 4096)),)),
        ("mv a0, s1", (("a0", Sum("s1")),)),
        ("addi sp, sp, -32", (("sp", Sum("sp", -32)),)),
        ("addiw a0, a0, 1", (("a0", None),)),
        ("sd ra, 24(sp)", ((MemorySlot("sp", 24), Sum("ra")),)),
        ("sd zero, 8(sp)", ((MemorySlot("sp", 8), Sum(None, 0)),)),
        ("ld a0, 8(sp)", (("a0", Sum(MemorySlot("sp", 8))),)),
        ("lw a0, 8(sp)", (("a0", None),)),
        ("fsw fa0, 0(a1)", ()),
        ("flw fa0, 0(a1)", ()),
    ],
)
def test_instructions_say_what_they_leave(text: str, moves: tuple):
    assert step(text).moves == moves


@pytest.mark.parametrize(("text", "count"), [("call k0", 2), ("tail k1@plt", 2), ("jalr a5", 1), ("j .L1", 1)])
def test_calls_of_symbols_are_two_instructions(text: str, count: int):
    assert step(text).instructions == count


def test_branches_compare_registers():
    assert step("bne a0, a1, .L1").compares == BranchCondition(Sum("a0"), Sum("a1"), 64)
    assert (step("bnez a0, .L1").condition, step("bnez a0, .L1").compares) == (
        "ne",
        BranchCondition(Sum("a0"), Sum(None, 0)),
    )
    assert step("fsw fa0, 4(sp)").stores == (MemorySlot("sp", 4),)
