"""Blocks, what dominates them, and loops."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.thumb.steps import READER as THUMB
from graphc.codegen.proof.flow import loops_of
from graphc.errors import RealtimeError
from tests.codegen.proof.functions import flow

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
    jne .L1
    retq
"""


def test_blocks_end_where_control_goes_elsewhere():
    found = flow(NEST)
    assert [list(found.span(b)) for b in range(len(found.starts))] == [[0], [1], [2, 3, 4], [5, 6, 7], [8]]
    assert found.after == ((1,), (2,), (2, 3), (1, 4), ())
    assert found.dominators[4] == {0, 1, 2, 3, 4}


def test_inner_loops_come_before_those_around_them():
    loops = loops_of(flow(NEST))
    assert loops is not None
    assert [(loop.head, sorted(loop.blocks), loop.latches) for loop in loops] == [(2, [2], (2,)), (1, [1, 2, 3], (3,))]


def test_a_loop_that_is_entered_at_two_places_is_none():
    assert loops_of(flow("testq %rdi, %rdi\nje .L2\n.L1:\nincq %rax\n.L2:\ncmpq $9, %rax\njne .L1\nretq")) is None


def test_a_return_under_a_condition_leaves_a_loop():
    found = flow("movs r3, #0\n.L1:\nadds r3, #1\ncmp r3, #7\nit hs\nbxhs lr\nb .L1", machine=THUMB)
    assert found.after == ((1,), (3, 2), (1,), ()) and list(found.span(3)) == []
    (loop,) = loops_of(found) or ()
    assert (loop.head, sorted(loop.blocks)) == (1, [1, 2])


def test_a_jump_to_a_place_in_a_register_is_refused():
    with pytest.raises(RealtimeError, match=r"`jmpq \*%rax` has an unknown target"):
        flow("jmpq *%rax")
