"""Threads for kernels: what has threads of its own, what these share, and where rows lie."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from graphc.codegen.machine.cuda.costs import GPU
from graphc.codegen.schedule.gpu.spill import spill_rows
from graphc.codegen.schedule.gpu.threads import give_threads, put_barriers, share_loops
from graphc.ir.kernel.interpret import run_kernel, run_program
from graphc.ir.kernel.parse import parse_kernel
from graphc.ir.kernel.statements import Barrier, Call, Kernel, Loop, Program, Read, Stmt, Storage, walk
from graphc.ir.kernel.text import print_kernel
from graphc.ir.kernel.threads import verify_threads
from graphc.ir.kernel.verify import verify_kernel, verify_program


def softmax(rows: int, length: int) -> Kernel:
    size = rows * length
    return parse_kernel(f"""kernel @k(%x: f32[{size}] in, %y: f32[{size}] out, %s: f32[{length}] scratch) {{
      for i in {rows} parallel {{
        acc m: f32 = max f32(-inf)
        for a in {length} reduce {{ v1: f32 = load %x[{length}*i + a] update m with v1 }}
        v2 = read m
        acc t: f32 = add f32(0.0)
        for b in {length} reduce {{
          v3: f32 = load %x[{length}*i + b]
          v4: f32 = sub(v3, v2)
          v5: f32 = exp(v4)
          store %s[b] = v5
          update t with v5
        }}
        v6 = read t
        for c in {length} parallel {{
          v7: f32 = load %s[c]
          v8: f32 = div(v7, v6)
          store %y[{length}*i + c] = v8
        }}
      }}
    }}""")


def outer(kernel: Kernel) -> str:
    first = kernel.body[0]
    return first.kind if isinstance(first, Loop) else ""


def roles(kernel: Kernel) -> list[str]:
    return [b.role for b in kernel.buffers if b.role not in ("in", "out", "inout")]


@pytest.mark.parametrize(
    "length,kind,role",
    [(10, "warp", "private"), (1000, "block", "private"), (5000, "block", "shared"), (20000, "block", "scratch")],
)
def test_rows_by_their_length(length: int, kind: str, role: str):
    kernel = softmax(3, length)
    if length == 1000:
        kernel = softmax(3, GPU.warp_row + 1)
    found, why = give_threads(kernel, GPU)
    assert outer(found) == kind and roles(found) == [role] and kind in why and found.threads == GPU.threads
    if role == "scratch":
        return
    verify_kernel(found)
    x = np.random.default_rng(0).standard_normal(kernel.buffers[0].size).astype(np.float32)
    results = []
    for k in (kernel, found):
        results.append(np.zeros_like(x))
        run_kernel(k, {"x": x, "y": results[-1]})
    np.testing.assert_array_equal(*results)


def test_maps_have_a_thread_for_each_element():
    kernel = parse_kernel("""kernel @k(%x: f32[24] in, %y: f32[24] out) {
      for i in 4 parallel { for j in 6 parallel { v1: f32 = load %x[i + 4*j] store %y[6*i + j] = v1 } }
    }""")
    found, why = give_threads(kernel, GPU)
    assert [s.kind for s, _ in walk(found.body) if isinstance(s, Loop)] == ["grid", "grid"] and "a thread" in why


def test_sums_of_columns_have_a_thread_for_each_column_and_those_of_rows_a_warp():
    text = """kernel @k(%x: f32[6400] in, %y: f32[64] out) {{
      for i in 64 parallel {{
        acc a: f32 = add f32(0.0)
        for j in 100 reduce {{ v1: f32 = load %x[{index}] update a with v1 }}
        v2 = read a
        store %y[i] = v2
      }}
    }}"""
    assert outer(give_threads(parse_kernel(text.format(index="i + 64*j")), GPU)[0]) == "grid"
    assert outer(give_threads(parse_kernel(text.format(index="100*i + j")), GPU)[0]) == "warp"


def test_one_block_where_nothing_is_independent():
    kernel = parse_kernel("""kernel @k(%z: i64[5] in, %y: f32[20] inout) {
      for i in 5 serial {
        v1: i64 = load %z[i]
        for j in 4 parallel { store %y[j + 4*[v1:0..4]] add= f32(1.0) }
      }
    }""")
    found, why = give_threads(kernel, GPU)
    assert outer(found) == "serial" and "one block" in why
    assert sum(isinstance(s, Barrier) for s, _ in walk(found.body)) == 1


def test_rows_without_room_become_temporaries():
    found = give_threads(softmax(3, 20000), GPU)[0]
    storages = (
        Storage("x", found.buffers[0].dtype, (60000,), "input"),
        Storage("y", found.buffers[1].dtype, (60000,), "output"),
    )
    program = spill_rows(Program("p", storages, (found,), (Call("k", ("x", "y")),)))
    verify_program(program)
    assert program.storages[-1].cls == "temp" and program.storages[-1].shape == (60000,)
    plain = Program("p", storages, (replace(softmax(3, 20000)),), (Call("k", ("x", "y")),))
    x = np.random.default_rng(0).standard_normal(60000).astype(np.float32)
    np.testing.assert_array_equal(run_program(program, [x])[0], run_program(plain, [x])[0])


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


@pytest.mark.parametrize("limit,count", [("", 0), ("until v9 ", 1)])
def test_barriers_in_a_loop_without_iterations_do_not_count_after_it(limit: str, count: int):
    """Sums over the block synchronize, but a loop that ends at once has none."""
    total = "acc a: f32 = add f32(0.0) for k in 8 thread { v3: f32 = load %x[k] update a with v3 }"
    loop = f"for t in 3 serial {limit}{{ {total} v4 = read a over block }}"
    inserted, text = with_barriers(f"v8: f32 = load %x[0] v9: i64 = cast(v8) {FILL} {loop} {USE}")
    assert inserted == count
    verify_threads(parse_kernel(text))


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
