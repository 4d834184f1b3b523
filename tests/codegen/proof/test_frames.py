"""The stack of a function: what it sets aside, what it writes, and what lies on it when it calls others."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.aarch64.steps import READER as AARCH64
from graphc.codegen.machine.riscv64.steps import READER as RISCV64
from graphc.codegen.proof.frames import CallSite, frame_of
from graphc.errors import RealtimeError
from tests.codegen.proof.functions import values


def test_pushes_room_and_what_lies_below_it_add_up():
    frame = frame_of(values("pushq %rbx\nsubq $16, %rsp\nmovq %rdi, -24(%rsp)\naddq $16, %rsp\npopq %rbx\nretq"))
    assert (frame.reserved, frame.touched) == (8 + 16 + 24, 8 + 16 + 24)


def test_room_that_nothing_is_written_to_is_reserved_only():
    frame = frame_of(values("subq $64, %rsp\nmovq %rdi, 32(%rsp)\naddq $64, %rsp\nretq"))
    assert (frame.reserved, frame.touched) == (64, 32)


def test_a_call_has_the_return_address_below_the_frame():
    frame = frame_of(values("subq $24, %rsp\ncallq f\naddq $24, %rsp\njmp g"))
    assert frame.calls == (CallSite(1, "f", 32), CallSite(3, "g", 0))
    assert frame.touched == 32


def test_frames_of_other_machines():
    body = "stp x29, x30, [sp, #-32]!\nbl f\nldp x29, x30, [sp], #32\nret"
    assert frame_of(values(body, AARCH64)).calls == (CallSite(1, "f", 32),)
    body = "addi sp, sp, -48\nsd ra, 40(sp)\ncall f\nld ra, 40(sp)\naddi sp, sp, 48\nret"
    frame = frame_of(values(body, RISCV64))
    assert (frame.reserved, frame.touched, frame.calls) == (48, 48, (CallSite(2, "f", 48),))


@pytest.mark.parametrize("body", ["subq %rdi, %rsp\nretq", "testq %rdi, %rdi\nje .L1\npushq %rax\n.L1:\nretq"])
def test_a_frame_of_unknown_size_is_refused(body: str):
    with pytest.raises(RealtimeError, match="changes by an unknown number of bytes"):
        frame_of(values(body))
