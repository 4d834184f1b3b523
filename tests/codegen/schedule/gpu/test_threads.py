"""Threads for kernels: what has threads of its own, what these share, and where rows lie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphc.codegen.machine.cuda.costs import GPU
from graphc.codegen.schedule.gpu.spill import spill_rows
from graphc.codegen.schedule.gpu.threads import give_threads
from graphc.ir.kernel.interpret import run_kernel, run_program
from graphc.ir.kernel.parse import parse_kernel
from graphc.ir.kernel.statements import Barrier, Call, Kernel, Loop, Program, Storage, walk
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
