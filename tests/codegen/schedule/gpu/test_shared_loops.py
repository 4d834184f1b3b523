"""Loops that threads of a group share."""

from __future__ import annotations

from graphc.codegen.schedule.gpu.shared_loops import share_loops
from graphc.ir.kernel.parse import parse_kernel
from graphc.ir.kernel.statements import Loop, Read, Stmt, walk


def shared(body: str, kind: str = "thread") -> tuple[Stmt, ...]:
    head = "kernel @k(%x: f32[64] in, %y: f32[64] inout, %z: i64[8] in) {"
    return share_loops(parse_kernel(f"{head} {body} }}").body, kind)


def kinds(body: tuple[Stmt, ...]) -> list[str]:
    return [s.kind for s, _ in walk(body) if isinstance(s, Loop)]


def reads(body: tuple[Stmt, ...]) -> list[str]:
    return [s.over for s, _ in walk(body) if isinstance(s, Read)]


SUM = "acc a: f32 = add f32(0.0) for i in 64 reduce { v1: f32 = load %x[i] update a with v1 }"


def test_a_sum_is_shared_and_read_over_all():
    result = shared(f"{SUM} v2 = read a store %y[0] = v2")
    assert kinds(result) == ["thread"] and reads(result) == ["block"]
    result = shared(f"{SUM} v2 = read a store %y[0] = v2", "lane")
    assert kinds(result) == ["lane"] and reads(result) == ["warp"]


def test_a_sum_that_is_read_in_a_loop_is_read_before_it():
    shared_text = shared(f"{SUM} for j in 64 parallel {{ v2 = read a store %y[j] = v2 }}")
    assert kinds(shared_text) == ["thread", "thread"] and reads(shared_text) == ["block"]
    assert isinstance(shared_text[2], Read)


def test_loops_that_stand_alone_in_each_other_are_shared_together():
    shared_text = shared("for i in 8 parallel { for j in 8 parallel { store %y[8*i + j] = f32(0.0) } }")
    assert kinds(shared_text) == ["thread", "thread"]


def test_sums_within_a_shared_loop_are_those_of_one_thread():
    result = shared(
        "for i in 8 parallel { acc a: f32 = add f32(0.0) for j in 8 reduce { v1: f32 = load %x[8*i + j] "
        "update a with v1 } v2 = read a store %y[i] = v2 }"
    )
    assert kinds(result) == ["thread", "reduce"] and reads(result) == [""]


def test_iterations_that_meet_are_not_shared():
    serial = (
        "for i in 8 serial { v1: i64 = load %z[i] for j in 8 parallel { store %y[j + 8*[v1:0..7]] add= f32(1.0) } }"
    )
    assert kinds(shared(serial)) == ["serial", "thread"]
    same = "for i in 8 reduce { v1: f32 = load %x[i] store %y[0] add= v1 }"
    assert kinds(shared(same)) == ["reduce"]
