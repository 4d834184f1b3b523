"""Values of registers and the stack: numbers, and offsets from unknown values."""

from __future__ import annotations

from typing import Any

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


def test_aligning_the_stack_pointer_counts_as_the_most_that_it_may_move():
    result = values("pushq %rbp\nmovq %rsp, %rbp\nsubq $8, %rsp\nandq $-32, %rsp\nretq")
    assert is_on_stack(at_end(result, "rsp")) and depth(at_end(result, "rsp")) == 8 + 8 + 31
