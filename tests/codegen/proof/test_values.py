"""Values of registers and the stack: numbers, and offsets from unknown values."""

from __future__ import annotations

from typing import Any

import pytest

from graphc.codegen.machine.aarch64.steps import READER as aarch64
from graphc.codegen.machine.riscv64.steps import READER as riscv64
from graphc.codegen.machine.step import Reader
from graphc.codegen.machine.thumb.steps import READER as thumb
from graphc.codegen.machine.x86_64.steps import READER as x86_64
from graphc.codegen.proof.prove import frame_of
from graphc.codegen.proof.values import Values, depth, is_on_stack
from tests.codegen.proof.functions import values


def at_end(result: Values, key: Any) -> Any:
    return result.leaving[len(result.flow.starts) - 1].of(key)


def test_numbers_go_through_registers_and_the_stack():
    result = values("subq $24, %rsp\nmovl $5, %eax\nmovq %rax, 8(%rsp)\naddq $2, 8(%rsp)\nmovq 8(%rsp), %rcx\nretq")
    assert at_end(result, "rcx") == (None, 7)
    assert depth(at_end(result, "rsp")) == 24


def test_what_differs_between_two_ways_is_no_number():
    result = values("xorl %eax, %eax\ntestq %rdi, %rdi\nje .L1\nmovl $1, %eax\n.L1:\nretq")
    assert at_end(result, "rax")[0] is not None


def test_what_is_the_same_on_all_ways_stays_a_number_in_loops():
    result = values("movl $3, %eax\nxorl %ecx, %ecx\n.L1:\nincq %rcx\ncmpq $4, %rcx\njne .L1\nretq")
    assert at_end(result, "rax") == (None, 3)


def test_calls_keep_what_the_callee_restores():
    result = values("movl $3, %ebx\nmovl $4, %ecx\ncallq f\nretq")
    assert at_end(result, "rbx") == (None, 3)
    assert at_end(result, "rcx")[0] is not None


def test_a_store_of_a_vector_forgets_what_it_covers():
    before, after = "movq $1, -72(%rsp)\nmovq $2, -16(%rsp)", "movq -72(%rsp), %rax\nmovq -16(%rsp), %rcx\nretq"
    result = values(f"{before}\nvmovups %ymm0, -48(%rsp)\n{after}")
    assert at_end(result, "rax") == (None, 1)
    assert at_end(result, "rcx")[0] is not None


def test_where_the_stack_has_an_address_anything_may_be_written():
    body = "movq $1, -8(%rsp)\n{}\nmovq %rax, (%rdi,%rcx)\nmovq -8(%rsp), %rdx\nretq"
    assert at_end(values(body.format("nop")), "rdx") == (None, 1)
    escaped = values(body.format("leaq -64(%rsp), %rsi"))
    assert escaped.escaped and at_end(escaped, "rdx")[0] is not None


@pytest.mark.parametrize(
    ("machine", "store"),
    [
        (x86_64, "movq %rax, -64(%rsp,%rcx,8)"),
        (x86_64, "leaq -64(%rsp,%rcx,8), %rsi\nmovq %rax, (%rsi)"),
        (x86_64, "movq %rsp, (%rdi)\ncallq f"),
        (aarch64, "str x0, [sp, x2, lsl #3]"),
        (aarch64, "add x4, sp, x2, lsl #3\nstr x0, [x4]"),
        (riscv64, "add a4, sp, a2\nsd a0, 0(a4)"),
        (thumb, "str r0, [sp, r2]"),
        (thumb, "add.w r4, sp, r2, lsl #3\nstr r0, [r4]"),
        (thumb, "add r4, sp\nstr r0, [r4]"),
    ],
)
def test_a_store_at_an_unknown_offset_from_the_stack_pointer_may_write_each_word(machine: Reader, store: str):
    word, register = {
        "x86_64": ("movq $1, -8(%rsp)\n{}\nmovq -8(%rsp), %rbx\nretq", "rbx"),
        "aarch64": ("mov x19, #1\nstr x19, [sp, #8]\n{}\nldr x19, [sp, #8]\nret", "x19"),
        "riscv64": ("li s1, 1\nsd s1, 8(sp)\n{}\nld s1, 8(sp)\nret", "s1"),
        "thumb": ("movs r5, #1\nstr r5, [sp, #8]\n{}\nldr r5, [sp, #8]\nbx lr", "r5"),
    }[machine.architecture]
    assert at_end(values(word.format("nop"), machine), register) == (None, 1)
    assert at_end(values(word.format(store), machine), register)[0] is not None


def test_the_stack_of_an_indexed_store_counts_from_its_offset():
    assert frame_of(values("movq %rax, -64(%rsp,%rcx,8)\nretq")).touched == 64


_SPILL = "movs r4, #1\nstr r4, [sp, #24]\nadd.w r12, sp, #8\n{}\nstr r0, [r0, r2]\nldr r5, [sp, #24]\nbx lr"


@pytest.mark.parametrize(
    "use",
    [
        "stm.w r12, {r0, r1}\nadd.w r12, r2, r3, lsl #2",
        "ldr r0, [r12, #4]\nldr.w r12, [r0, r1]\nstr r1, [r12, r2]",
        "stm.w r12, {r0, r1}\ncbz r0, .L1\nmov r12, r1\n.L1:\nmla r12, r1, r2, r3",
    ],
)
def test_a_temporary_address_of_words_on_the_stack_is_followed(use: str):
    result = values(_SPILL.format(use), thumb)
    assert not result.escaped and at_end(result, "r5") == (None, 1)


@pytest.mark.parametrize(
    "use",
    [
        "str r1, [r12, r2]",
        "strb r1, [r12]",
        "str.w r12, [r0]",
        "adds r12, r12, r1",
        "bfi r12, r1, #0, #4",
        "mov r3, r12",
        "vmov s0, r12",
        "stm.w r12, {r0, r12}",
        "bl f",
        "cbz r0, .L1\nmov r12, r1\n.L1:\nstr r0, [r12, #4]",
        "stm.w r12, {r0, r1}\n.L1:\nsubs r0, #1\nbne .L1\nadd.w r12, r12, r0",
        "it eq\nmoveq r12, r0\nstr r0, [r12, #4]",
    ],
)
def test_an_address_that_another_instruction_reads_is_no_temporary(use: str):
    result = values(_SPILL.format(use), thumb)
    assert result.escaped and at_end(result, "r5")[0] is not None


def test_aligning_the_stack_pointer_counts_as_the_most_that_it_may_move():
    result = values("pushq %rbp\nmovq %rsp, %rbp\nsubq $8, %rsp\nandq $-32, %rsp\nretq")
    assert is_on_stack(at_end(result, "rsp")) and depth(at_end(result, "rsp")) == 8 + 8 + 31
