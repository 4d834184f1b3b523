"""Instructions of aarch64 as steps."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.aarch64.steps import READER
from graphc.codegen.machine.step import BranchCondition, InstructionEffects, Line, MemorySlot, Sum
from graphc.codegen.proof.assembly import split_operands


def step(text: str) -> InstructionEffects:
    mnemonic, _, rest = text.partition(" ")
    return READER.step(Line(mnemonic, tuple(split_operands(rest)), 1), frozenset({".L1"}))


@pytest.mark.parametrize(
    ("text", "kind", "target"),
    [
        ("bl k0", "call", "k0"),
        ("blr x8", "call", ""),
        ("b k1", "tail", "k1"),
        ("b .L1", "jump", ".L1"),
        ("br x8", "jump", ""),
        ("b.lo .L1", "branch", ".L1"),
        ("tbz w0, #3, .L1", "branch", ".L1"),
        ("ret", "return", ""),
        ("brk #1", "stop", ""),
        ("svc #0", "system", ""),
        ("msr TPIDR_EL0, x8", "system", ""),
        ("msr FPCR, x8", "plain", ""),
        ("mrs x8, FPCR", "plain", ""),
        ("ldaxr w8, [x0]", "lock", ""),
        ("stlxr w9, w8, [x0]", "lock", ""),
        ("ldaddal x0, x1, [x2]", "lock", ""),
        ("casal x0, x1, [x2]", "lock", ""),
        ("fmla v0.4s, v1.4s, v2.s[0]", "plain", ""),
        ("ldp q0, q1, [x0]", "plain", ""),
    ],
)
def test_instructions_say_where_they_go(text: str, kind: str, target: str):
    assert (step(text).kind, step(text).target) == (kind, target)


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("mov x8, xzr", (("x8", Sum(None, 0)),)),
        ("mov w9, #216", (("x9", Sum(None, 216)),)),
        ("mov x0, x8", (("x0", Sum("x8")),)),
        ("mov w0, w8", (("x0", None),)),
        ("movk x9, #1, lsl #16", (("x9", None),)),
        ("add x15, x15, #1", (("x15", Sum("x15", 1)),)),
        ("add x1, x21, #2, lsl #12", (("x1", Sum("x21", 8192)),)),
        ("sub sp, sp, #80", (("sp", Sum("sp", -80)),)),
        ("madd x13, x8, x9, x0", (("x13", None),)),
        ("str x8, [sp, #8]", ((MemorySlot("sp", 8), Sum("x8")),)),
        ("str xzr, [sp, #8]", ((MemorySlot("sp", 8), Sum(None, 0)),)),
        ("ldr x25, [sp, #8]", (("x25", Sum(MemorySlot("sp", 8))),)),
        (
            "stp x29, x30, [sp, #-16]!",
            (("sp", Sum("sp", -16)), (MemorySlot("sp", 0), Sum("x29")), (MemorySlot("sp", 8), Sum("x30"))),
        ),
        (
            "ldp x29, x30, [sp], #16",
            (("x29", Sum(MemorySlot("sp", 0))), ("x30", Sum(MemorySlot("sp", 8))), ("sp", Sum("sp", 16))),
        ),
        ("ld1r { v20.4s }, [x17], #4", (("x17", Sum("x17", 4)),)),
        ("fcmp s0, s1", ()),
    ],
)
def test_instructions_say_what_they_leave(text: str, moves: tuple):
    assert step(text).moves == moves


def test_what_a_comparison_looks_at():
    assert step("cmp x15, #9").compares == BranchCondition(Sum("x15"), Sum(None, 9), 64)
    assert step("cmp w15, w1").compares == BranchCondition(Sum("x15"), Sum("x1"), 32)
    assert step("subs x8, x8, #1").compares == BranchCondition(Sum("x8"), Sum(None, 1), 64)
    assert step("cbnz x8, .L1").compares == BranchCondition(Sum("x8"), Sum(None, 0), 64)
    assert step("cbnz x8, .L1").condition == "ne"
    assert step("ccmp x8, #0, #4, ne").compares is None and not step("ccmp x8, #0, #4, ne").keeps_flags
    assert step("fmla v0.4s, v1.4s, v2.s[0]").keeps_flags


def test_stores_of_vectors_are_seen():
    assert step("stp q0, q1, [sp, #32]").stores == (MemorySlot("sp", 32),)
    assert step("str q0, [x0, x1]").stores_somewhere
