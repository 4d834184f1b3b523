"""The most instructions that a function runs, loop by loop."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.riscv64.steps import READER as RISCV64
from graphc.codegen.proof.longest import longest_path
from tests.codegen.proof.functions import values

NEST = """
    xorl %eax, %eax
    .L1:
    xorl %ecx, %ecx
    .L2:
    incq %rcx
    cmpq $4, %rcx
    jne .L2
    incq %rax
    cmpq $3, %rax
    jb .L1
    retq
"""


def most(body: str, **callees: int | None) -> int | None:
    return longest_path(values(body), callees).instructions


def turns(body: str) -> list[int | None]:
    return [loop.turns for loop in longest_path(values(body), {}).loops]


def test_nested_loops_multiply():
    assert turns(NEST) == [3, 4]
    assert most(NEST) == 1 + 3 * (1 + 4 * 3 + 3) + 1


@pytest.mark.parametrize(
    ("loop", "number"),
    [
        ("movq $-1024, %rax\n.L1:\naddq $64, %rax\njne .L1", 16),
        ("movl $5, %eax\n.L1:\ndecq %rax\njne .L1", 5),
        ("movl $100, %eax\n.L1:\nsubq $7, %rax\ncmpq $10, %rax\nja .L1", 13),
        ("xorl %eax, %eax\n.L1:\naddq $16, %rax\ncmpq $100, %rax\njbe .L1", 7),
        ("xorl %eax, %eax\n.L1:\nincq %rax\ncmpl $12, %eax\njl .L1", 12),
        ("leaq 640(%rdi), %rcx\n.L1:\naddq $64, %rdi\ncmpq %rcx, %rdi\njne .L1", 10),
        ("movq $0, -8(%rsp)\n.L1:\nmovq -8(%rsp), %rax\nincq %rax\nmovq %rax, -8(%rsp)\ncmpq $9, %rax\njne .L1", 9),
        ("xorl %eax, %eax\n.L1:\ncmpq $6, %rax\nje .L2\nincq %rax\njmp .L1\n.L2:", 7),
    ],
)
def test_loops_with_a_visible_end_have_a_bound(loop: str, number: int):
    assert turns(loop + "\nretq") == [number]


@pytest.mark.parametrize(
    "loop",
    [
        ".L1:\nincq %rax\ncmpq %rdi, %rax\njne .L1",
        "xorl %eax, %eax\n.L1:\nincq %rax\nvucomiss %xmm0, %xmm1\njb .L1",
        "xorl %eax, %eax\n.L1:\naddq $3, %rax\ncmpq $10, %rax\njne .L1",
        "xorl %eax, %eax\n.L1:\nincq %rax\nmovq (%rdi), %rax\ncmpq $10, %rax\njne .L1",
        "leaq 640(%rdi), %rcx\n.L1:\naddq $64, %rdi\ncmpq %rcx, %rdi\njb .L1",
    ],
)
def test_loops_without_one_have_none(loop: str):
    assert turns(loop + "\nretq") == [None]
    assert most(loop + "\nretq") is None


def test_of_two_ways_the_longer_one_counts():
    assert most("testq %rdi, %rdi\nje .L1\nnop\nnop\nnop\n.L1:\nretq") == 6


def test_callees_count_and_what_is_outside_counts_as_its_call():
    assert most("callq f\ncallq memcpy\nretq", f=10) == 13
    assert most("callq f\nretq", f=None) is None


def test_loops_of_riscv64():
    body = "li a1, 12\nli a0, 0\n.L1:\naddi a0, a0, 3\nbne a0, a1, .L1\nret"
    found = longest_path(values(body, RISCV64), {})
    assert ([loop.turns for loop in found.loops], found.instructions) == ([4], 11)
