"""Instructions of microcontrollers as steps."""

from __future__ import annotations

import re

import pytest

from graphc.codegen.machine.step import (
    RETURN,
    Aligned,
    BranchCondition,
    InstructionEffects,
    Line,
    MemorySlot,
    Sum,
    UpperHalf,
)
from graphc.codegen.machine.target import target_named
from graphc.codegen.machine.thumb.facts import FAMILY
from graphc.codegen.machine.thumb.steps import READER
from graphc.codegen.proof.assembly import split_operands
from graphc.codegen.proof.longest import longest_path
from graphc.codegen.proof.prove import CallSite, frame_of
from graphc.codegen.proof.values import State
from graphc.errors import RealtimeError
from tests.codegen.proof.functions import values


def steps(text: str) -> tuple[InstructionEffects, ...]:
    lines = []
    for number, line in enumerate(text.split("; "), 1):
        mnemonic, _, rest = line.partition(" ")
        lines.append(Line(mnemonic, tuple(split_operands(rest)), number))
    return READER.steps(lines, frozenset({".L1"}))


def step(text: str) -> InstructionEffects:
    return steps(text)[-1]


@pytest.mark.parametrize(
    ("text", "kind", "target"),
    [
        ("bl k0", "call", "k0"),
        ("blx r3", "call", ""),
        ("b k1", "tail", "k1"),
        ("b.w .L1", "jump", ".L1"),
        ("bx lr", "return", ""),
        ("bx r3", "tail", ""),
        ("tbb [pc, r0]", "tail", ""),
        ("mov pc, r1", "tail", ""),
        ("pop.w {r4, pc}", "return", ""),
        ("ldr pc, [sp], #4", "return", ""),
        ("ldr pc, [r0]", "tail", ""),
        ("blo.w .L1", "branch", ".L1"),
        ("bls k1", "call", "k1"),
        ("cbnz r0, .L1", "branch", ".L1"),
        ("le .L1", "jump", ".L1"),
        ("udf #0", "stop", ""),
        ("svc #0", "system", ""),
        ("cpsid i", "system", ""),
        ("msr primask, r0", "system", ""),
        ("mrs r0, primask", "system", ""),
        ("mcr p15, #0, r0, c7, c5, #4", "system", ""),
        ("ldrex r0, [r1]", "lock", ""),
        ("strexb r2, r0, [r1]", "lock", ""),
        ("lda r0, [r1]", "lock", ""),
        ("stl r0, [r1]", "lock", ""),
        ("vstrw.32 q0, [r0]", "unknown", ""),
        ("vctp.32 r0", "unknown", ""),
        ("other", "unknown", ""),
        ("msr apsr_nzcvq, r7", "plain", ""),
        ("mrs r0, apsr", "plain", ""),
        ("vfma.f32 s0, s1, s2", "plain", ""),
        ("ite mi", "plain", ""),
    ],
)
def test_instructions_say_where_they_go(text: str, kind: str, target: str):
    assert (step(text).kind, step(text).target) == (kind, target)


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("movs r0, #3", (("r0", Sum(None, 3)),)),
        ("mvn r0, #2", (("r0", Sum(None, -3)),)),
        ("movw r0, #65535", (("r0", Sum(None, 65535)),)),
        ("movt r0, #1", (("r0", UpperHalf("r0", 1)),)),
        ("mov.w r0, #4294967295", (("r0", Sum(None, -1)),)),
        ("mov r0, r8", (("r0", Sum("r8")),)),
        ("adds r0, #1", (("r0", Sum("r0", 1)),)),
        ("addw r3, r4, #1300", (("r3", Sum("r4", 1300)),)),
        ("sub.w sp, sp, #536", (("sp", Sum("sp", -536)),)),
        ("add r3, r0", (("r3", None),)),
        ("add.w r3, r0, r1, lsl #2", (("r3", None),)),
        ("bfc r4, #0, #3", (("r4", Aligned("r4", 8)),)),
        ("bfi r4, r5, #3, #2", (("r4", None),)),
        ("dls lr, r4", (("lr", Sum("r4")),)),
        ("str r0, [sp, #8]", ((MemorySlot("sp", 8), Sum("r0")),)),
        ("strb r0, [sp, #9]", ((MemorySlot("sp", 9), None),)),
        ("ldr.w r0, [sp, #8]", (("r0", Sum(MemorySlot("sp", 8))),)),
        ("ldrh r0, [r1]", (("r0", None),)),
        ("ldr r0, [r1, r2, lsl #2]", (("r0", None),)),
        ("ldr r0, .LCPI0_0", (("r0", None),)),
        ("ldr r0, [r1], #4", (("r0", Sum(MemorySlot("r1", 0))), ("r1", Sum("r1", 4)))),
        ("str r0, [r1, #-4]!", (("r1", Sum("r1", -4)), (MemorySlot("r1", 0), Sum("r0")))),
        ("ldrd r0, r1, [r0, #8]", (("r1", Sum(MemorySlot("r0", 12))), ("r0", Sum(MemorySlot("r0", 8))))),
        ("push {r4, lr}", (("sp", Sum("sp", -8)), (MemorySlot("sp", 0), Sum("r4")), (MemorySlot("sp", 4), Sum("lr")))),
        ("vpush {d8}", (("sp", Sum("sp", -8)), (MemorySlot("sp", 0), None), (MemorySlot("sp", 4), None))),
        ("pop {r4}", (("r4", Sum(MemorySlot("sp", 0))), ("sp", Sum("sp", 4)))),
        ("vldmia r0!, {d0, s2}", (("r0", Sum("r0", 12)),)),
        (
            "stm r3!, {r0, r1}",
            ((MemorySlot("r3", 0), Sum("r0")), (MemorySlot("r3", 4), Sum("r1")), ("r3", Sum("r3", 8))),
        ),
        ("vstr d0, [sp]", ((MemorySlot("sp", 0), None), (MemorySlot("sp", 4), None))),
        ("str r0, [sp, r1]", ()),
        ("vmov r8, s0", (("r8", None),)),
        ("vmov d1, r4, r6", ()),
        ("csel r1, zr, r6, hs", (("r1", None),)),
    ],
)
def test_moves(text: str, moves: tuple):
    assert step(text).moves == moves


def test_results_of_two_registers_are_unknown():
    assert step("umull r2, r4, r3, r2").unknown == ("r2", "r4")
    assert step("vmov r8, r3, d0").unknown == ("r8", "r3")
    assert step("smulbb r0, r1, r2").moves == (("r0", None),)


def test_comparisons():
    assert step("cmp.w r12, #3").compares == BranchCondition(Sum("r12"), Sum(None, 3), 32)
    assert step("cmn r1, #3").compares == BranchCondition(Sum("r1"), Sum(None, -3), 32)
    assert step("subs r1, r2, #4").compares == BranchCondition(Sum("r2"), Sum(None, 4), 32)
    assert step("adds r1, #4").compares == BranchCondition(Sum("r1", 4), Sum(None, 0), 0)
    for text in ("sbcs r0, r2", "ands r0, r1", "vmrs APSR_nzcv, fpscr", "tst r0, r1", "msr apsr_nzcvq, r0"):
        assert step(text).compares is None and not step(text).keeps_flags
    assert step("mov r0, r1").keeps_flags and step("sub r0, r1, #4").keeps_flags


def test_an_instruction_under_a_condition_may_do_nothing():
    assert step("it lo; movlo r0, #1").moves == (("r0", None),)
    assert step("it eq; streq r0, [sp, #4]").moves == ((MemorySlot("sp", 4), None),)
    assert step("it ne; cmpne r0, #1") == InstructionEffects(keeps_flags=False)
    assert step("it hs; bxhs r3").kind == "tail"
    assert (step("it hs; bhs k1").kind, step("it hs; bhs k1").target) == ("call", "k1")
    assert steps("ite mi; vldrmi s4, [r3, #4]; vmovpl.f32 s4, s0; movs r0, #3")[-1].moves == (("r0", Sum(None, 3)),)


def test_the_other_condition_of_a_block_with_a_return_changes_registers():
    assert steps("ite ne; movne r4, #0; popeq {r4, pc}")[1].moves == (("r4", None),)


def test_a_return_under_a_condition_takes_nothing_from_the_code_after_it():
    free, leave, after = steps("itt hs; addhs sp, #8; pophs.w {r4, pc}; movs r0, #3")[1:]
    assert free.moves == () and after.moves == (("r0", Sum(None, 3)),)
    assert leave == InstructionEffects(kind="branch", target=RETURN, condition="uge")


LOOPS = {
    "movs r3, #0\n.L1:\nadds r3, #1\ncmp r3, #7\nblo .L1\nbx lr": 7,
    "movs r3, #7\n.L1:\nsubs r3, #1\nbne .L1\nbx lr": 7,
    "movs r3, #7\n.L1:\nsubs r3, #1\nbpl .L1\nbx lr": 8,
    "mvn r3, #6\n.L1:\nadds r3, #1\nbne .L1\nbx lr": 7,
    "movs r3, #7\ndls lr, r3\n.L1:\nnop\nle lr, .L1\nbx lr": 7,
    "movs r3, #0\n.L1:\nadds r3, #1\ncmp r3, #7\nit hs\nbxhs lr\nb .L1": 7,
    "movs r3, #0\nstr r3, [sp, #-8]!\n.L1:\nldr r3, [sp]\nadds r3, #1\nstr r3, [sp]\nstr r0, [sp, #4]\n"
    "cmp r3, #7\nblo .L1\nadd sp, #8\nbx lr": 7,
    "movw r5, #34464\nmovt r5, #1\nmovs r3, #0\n.L1:\nadds r3, #1\ncmp r3, r5\nblo .L1\nbx lr": 100_000,
    ".L1:\nadds r3, #1\ncmp r3, #7\nblo .L1\nbx lr": None,
    "movs r3, #0\n.L1:\nit ne\naddne r3, #1\ncmp r3, #7\nblo .L1\nbx lr": None,
}


@pytest.mark.parametrize("body", LOOPS)
def test_loops_are_bounded(body: str):
    assert [loop.turns for loop in longest_path(values(body, READER), {}).loops] == [LOOPS[body]]


def test_every_instruction_under_a_condition_counts():
    body = "movs r3, #0\n.L1:\nadds r3, #1\ncmp r3, #7\nitt hs\naddhs r0, #1\nbxhs lr\nb .L1"
    assert longest_path(values(body, READER), {}).instructions == 1 + 7 * 5 + 6


def test_frames():
    body = "push {r4, lr}\nsub sp, #16\nvpush {d8, d9}\nstr r0, [sp]\nbl f\nvpop {d8, d9}\nadd sp, #16\npop {r4, pc}"
    frame = frame_of(values(body, READER))
    assert (frame.reserved, frame.touched, frame.calls) == (40, 40, (CallSite(4, "f", 40),))
    aligned = "push {r4, lr}\nmov r4, sp\nbfc r4, #0, #4\nmov sp, r4\nstr r0, [sp, #-4]!\nbl f\nudf #0"
    assert frame_of(values(aligned, READER)).reserved == 8 + 15 + 4


@pytest.mark.parametrize(
    "body", ["sub sp, r0\nbx lr", "it hs\nsubhs sp, #8\nbx lr", "cbz r0, .L1\npush {r4}\n.L1:\nbx lr"]
)
def test_a_frame_of_unknown_size_is_refused(body: str):
    with pytest.raises(RealtimeError, match="changes by an unknown number of bytes"):
        frame_of(values(body, READER))


def test_a_store_at_an_unknown_place_of_the_stack_forgets_it():
    body = "sub sp, #16\nmovs r3, #3\nstr r3, [sp]\n{}\nldr r4, [sp]\nudf #0"
    for store, known in (("str r0, [r1, r2]", True), ("str r0, [sp, r2]", False), ("vstr d0, [sp, #4]", True)):
        found = values(body.format(store), READER)
        state = State(dict(found.entering[0].values))
        for _ in found.walk(0, state):
            pass
        assert (state.of("r4") == (None, 3)) == known, store


@pytest.mark.parametrize("name", FAMILY.named)
def test_the_reader_belongs_to_the_family(name: str):
    reader = target_named(name).reader
    assert reader is READER and reader.filler is not None
    assert re.fullmatch(reader.filler.pattern, b"\x00\xbf") and not reader.filler.fullmatch(b"\x00\x20")
