"""Barriers between what threads of a group do."""

from __future__ import annotations

import re

import pytest

from graphc.codegen.schedule.gpu.barriers import put_barriers
from graphc.ir.kernel.parse import parse_kernel
from graphc.ir.kernel.statements import Barrier, walk
from graphc.ir.kernel.text import print_kernel


def with_barriers(body: str, private: frozenset[str] = frozenset()) -> tuple[int, str]:
    """Return the number of barriers inserted into a body, and its text."""
    head = "kernel @k(%x: f32[8] in, %y: f32[8] inout, %s: f32[8] shared) threads 32 {"
    kernel = parse_kernel(f"{head} {body} }}")
    found = put_barriers(kernel.body, "block", private)
    text = print_kernel(type(kernel)(kernel.name, kernel.buffers, found, threads=32))
    return sum(isinstance(s, Barrier) for s, _ in walk(found)), text


FILL = "for i in 8 thread { v1: f32 = load %x[i] store %s[i] = v1 }"
USE = "for j in 8 thread { v2: f32 = load %s[7 - j] store %y[j] = v2 }"


@pytest.mark.parametrize(
    "body,count",
    [
        (FILL, 0),
        (f"{FILL} {USE}", 1),
        # Written over while others still read.
        (f"{FILL} {USE} for k in 8 thread {{ store %s[k] = f32(0.0) }}", 2),
        # Read by all, written by one.
        ("v1: f32 = load %y[0] store %y[0] = f32(1.0)", 1),
        ("v1: f32 = load %y[0] v2: f32 = load %x[0]", 0),
        # A sum over the block is a barrier, too.
        (f"acc a: f32 = add f32(0.0) {FILL} v3 = read a over block {USE}", 0),
    ],
)
def test_what_meets_in_memory_is_kept_apart(body: str, count: int):
    assert with_barriers(body)[0] == count


def test_what_threads_keep_for_themselves_needs_none():
    own = "for j in 8 thread { v2: f32 = load %s[j] store %y[j] = v2 }"
    assert with_barriers(f"{FILL} {own}")[0] == 1 and with_barriers(f"{FILL} {own}", frozenset({"s"}))[0] == 0


def test_the_next_iteration_of_a_loop_waits_for_the_one_before():
    count, text = with_barriers(f"for t in 3 serial {{ {FILL} {USE} }}")
    assert count == 2 and re.search(r"barrier block\s*\}\s*\}", text)
