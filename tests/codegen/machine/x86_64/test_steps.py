"""Instructions of x86-64 as steps: where they go, what they leave, and what is refused later."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.step import Aligned, BranchCondition, InstructionEffects, Line, MemorySlot, Sum
from graphc.codegen.machine.x86_64.steps import READER
from graphc.codegen.proof.assembly import split_operands


def step(text: str) -> InstructionEffects:
    words = text.split(" ", 2 if text.startswith(("lock ", "rep ")) else 1)
    mnemonic, rest = (" ".join(words[:2]), words[2:]) if text.startswith(("lock ", "rep ")) else (words[0], words[1:])
    return READER.step(Line(mnemonic, tuple(split_operands(rest[0] if rest else "")), 1), frozenset({".L1"}))


@pytest.mark.parametrize(
    ("text", "kind", "target"),
    [
        ("callq k0", "call", "k0"),
        ("callq memcpy@PLT", "call", "memcpy"),
        ("callq *%rax", "call", ""),
        ("jmp k1", "tail", "k1"),
        ("jmp .L1", "jump", ".L1"),
        ("jmpq *%rax", "jump", ""),
        ("jne .L1", "branch", ".L1"),
        ("retq", "return", ""),
        ("ud2", "stop", ""),
        ("syscall", "system", ""),
        ("int $128", "system", ""),
        ("lock xaddl %eax, (%rdi)", "lock", ""),
        ("xchgq %rax, (%rdi)", "lock", ""),
        ("vaddps %ymm0, %ymm1, %ymm2", "plain", ""),
        ("vldmxcsr 4(%rsp)", "plain", ""),
    ],
)
def test_instructions_say_where_they_go(text: str, kind: str, target: str):
    assert (step(text).kind, step(text).target) == (kind, target)


@pytest.mark.parametrize(
    ("text", "place", "value"),
    [
        ("movl $37, %ecx", "rcx", Sum(None, 37)),
        ("movq $-1024, %rax", "rax", Sum(None, -1024)),
        ("xorl %r9d, %r9d", "r9", Sum(None, 0)),
        ("movq %rax, %r8", "r8", Sum("rax")),
        ("movq 8(%rsp), %r13", "r13", Sum(MemorySlot("rsp", 8))),
        ("movq %r13, 8(%rsp)", MemorySlot("rsp", 8), Sum("r13")),
        ("leaq 3136(%r15), %r12", "r12", Sum("r15", 3136)),
        ("leaq (%rax,%rcx), %rdx", "rdx", None),
        ("addq $64, %r8", "r8", Sum("r8", 64)),
        ("subq $1000, %rsp", "rsp", Sum("rsp", -1000)),
        ("andq $-32, %rsp", "rsp", Aligned("rsp", 32)),
        ("incq %rax", "rax", Sum("rax", 1)),
        ("addl $1, %eax", "rax", None),
        ("movl $1, 8(%rsp)", MemorySlot("rsp", 8), None),
        ("imulq $2368, %rax, %r8", "r8", None),
    ],
)
def test_instructions_say_what_they_leave(text: str, place: object, value: object):
    assert step(text).moves == ((place, value),)


def test_what_a_comparison_looks_at():
    assert step("cmpq $37, %r9").compares == BranchCondition(Sum("r9"), Sum(None, 37), 64)
    assert step("cmpl $37, %r9d").compares == BranchCondition(Sum("r9"), Sum(None, 37), 32)
    assert step("testq %rax, %rax").compares == BranchCondition(Sum("rax"), Sum(None, 0), 64)
    assert step("decq %rax").compares == BranchCondition(Sum("rax", -1), Sum(None, 0), 0)


@pytest.mark.parametrize("text", ["vucomiss %xmm0, %xmm1", "vptest %ymm0, %ymm0", "kortestw %k0, %k0", "shlq $6, %r8"])
def test_what_changes_flags_otherwise_leaves_nothing_known_of_them(text: str):
    assert not step(text).keeps_flags and step(text).compares is None


@pytest.mark.parametrize("text", ["vaddps %ymm0, %ymm1, %ymm2", "movq %rax, %rcx", "leaq 8(%rax), %rcx", "pushq %rbx"])
def test_what_changes_no_flags_keeps_them(text: str):
    assert step(text).keeps_flags


def test_stores_of_vectors_are_seen():
    assert step("vmovups %ymm0, -64(%rsp)").stores == (MemorySlot("rsp", -64),)
    assert step("vmovups %ymm0, (%rdi,%rax,4)").stores_somewhere


def test_pushes_move_the_stack_pointer_first():
    assert step("pushq %rbx").moves == (("rsp", Sum("rsp", -8)), (MemorySlot("rsp", 0), Sum("rbx")))
    assert step("popq %rbx").moves == (("rbx", Sum(MemorySlot("rsp", 0))), ("rsp", Sum("rsp", 8)))


@pytest.mark.parametrize("text", ["cpuid", "frobnicate %rax, %rbx", "xlatb"])
def test_of_what_is_not_known_nothing_is_known_afterwards(text: str):
    assert step(text).forgets_all and step(text).stores_somewhere
