"""The native entry: the order of its table, memory of aliases, temporaries and scratch, and calls in order."""

from __future__ import annotations

import re

import numpy as np
import pytest

from graphc.base.dtypes import float32
from graphc.base.sizes.size import at
from graphc.codegen.llvm.entry import bound_storages, emit_program
from graphc.codegen.machine.linkage import ENTRY
from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.memory.bufferize import plan_memory
from graphc.codegen.schedule.pipeline import plan_execution, schedule_program
from graphc.ir.kernel.dims import dims_of_program
from graphc.ir.kernel.index import Axis, as_index
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.parse import parse_program
from graphc.ir.kernel.statements import Call, Program, Storage, aligned
from graphc.ir.kernel.verify import verify_program
from tests.codegen.kernel_native import kernel_of
from tests.native import Native, emitted, lowered, scheduled, target_or_skip
from tests.passes.graph_text import graph_of

WIDE = target_named("avx512")
DOUBLE = kernel_of("""
    kernel @double(%x: f32[4] in, %y: f32[4] out) {
      for i in 4 serial {
        v: f32 = load %x[i]
        w: f32 = add(v, v)
        store %y[i] = w
      }
    }""")
ADD = kernel_of("""
    kernel @add(%x: f32[4] inout, %y: f32[4] in, %s: f32[5] scratch, %t: f32[3] scratch) {
      for i in 4 serial {
        v: f32 = load %y[i]
        store %s[i] = v
      }
      store %t[2] = f32(100.0)
      for j in 4 serial {
        a: f32 = load %x[j]
        b: f32 = load %s[j]
        c: f32 = add(a, b)
        d: f32 = load %t[2]
        e: f32 = add(c, d)
        store %x[j] = e
      }
    }""")


def storage(name: str, cls: str, **rest) -> Storage:
    return Storage(name, float32, (4,), cls, **rest)


def program(*calls: tuple[str, ...], storages: tuple[Storage, ...]) -> Program:
    result = tuple(Call(name, tuple(args)) for name, *args in calls)
    return plan_memory(Program("p", storages, (DOUBLE, ADD), result))


def run(p: Program, *arrays: np.ndarray) -> list[np.ndarray]:
    return Native(p, target_or_skip("host"))(arrays)


def test_the_table_holds_bound_storages_in_order_and_the_arena_last():
    graph = graph_of("""
        graph @g(%x: f32[12,8], %w: f32[8,8] param "w", %s: f32[12,8] state "s") -> (f32[12,8]) {
          %c = constant() {value=f32[8](1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)} : f32[8]
          %e = exp(%x) : f32[12,8]
          %m = matmul(%e, %w) : f32[12,8]
          %a = add(%m, %c) : f32[12,8]
          %v = state_write(%s, %e) : f32[12,8]
          return %a
        }""")
    p = scheduled(lowered(graph), WIDE)
    assert [s.cls for s in bound_storages(p)] == ["input", "param", "state", "output", "constant"]
    assert f"%pa = getelementptr inbounds i64, ptr %table, i64 {len(bound_storages(p))}" in emitted(p, WIDE)


def test_calls_run_in_order_over_temporaries_and_scratch():
    storages = (storage("x", "input"), storage("y", "state", path="y"), storage("t", "temp"), storage("u", "temp"))
    p = program(("double", "x", "t"), ("double", "t", "u"), ("add", "y", "u"), ("add", "y", "t"), storages=storages)
    assert p.scratch == aligned(20) + aligned(12)
    x, y = np.arange(4, dtype=np.float32), np.full(4, 1000, np.float32)
    run(p, x, y)
    np.testing.assert_array_equal(y, 1200 + 6 * x)


def test_an_alias_lies_where_its_owner_lies():
    storages = (storage("x", "input"), storage("y", "output"), storage("z", "temp", alias="y"))
    p = program(("double", "x", "z"), ("add", "y", "x"), storages=storages)
    assert [s.name for s in bound_storages(p)] == ["x", "y"]
    x = np.arange(4, dtype=np.float32)
    (y,) = run(p, x)
    np.testing.assert_array_equal(y, 100 + 3 * x)


def test_what_no_call_uses_is_not_read_from_the_table():
    p = program(("double", "x", "y"), storages=(storage("a", "input"), storage("x", "input"), storage("y", "output")))
    loads = re.findall(r"%a\d+\.\d+ = load", emitted(p, WIDE))
    assert len(loads) == 2


def test_an_empty_program_returns():
    p = program(storages=(storage("x", "input"),))
    assert f"@{ENTRY}(" in emitted(p, WIDE)
    assert run(p, np.zeros(4, np.float32)) == []


def test_loops_inside_of_loops():
    outer, inner = Axis("a", 3), Axis("b", 2)
    x, y = storage("x", "input"), Storage("y", float32, (24,), "output")
    total = storage("total", "output")
    place = (2 - as_index(outer)) * 8 + as_index(inner) * 4
    calls = (
        Call("double", ("x", "total")),
        Call("double", ("x", "z"), loops=(outer,)),
        Call("add", ("total", "x"), loops=(outer, inner)),
        Call("double", ("total", "y"), loops=(outer, inner), offsets=(as_index(0), place)),
        Call("add", ("total", "x")),
    )
    made = plan_memory(Program("p", (x, y, total, storage("z", "temp")), (DOUBLE, ADD), calls))
    verify_program(made)
    given = np.arange(4, dtype=np.float32)
    result = run(made, given)
    np.testing.assert_array_equal(result[1], 2 * given + 7 * (given + 100))
    steps = [2 * (2 * given + n * (given + 100)) for n in range(1, 7)]
    np.testing.assert_array_equal(result[0].reshape(6, 4), [steps[i] for i in (4, 5, 2, 3, 0, 1)])
    for native, interpreted in zip(result, run_program(made, [given]), strict=True):
        np.testing.assert_array_equal(native, interpreted)


def test_the_calls_of_a_long_program_are_in_several_functions():
    count = 1000
    temps = tuple(storage(f"t{i}", "temp") for i in range(count - 1))
    names = ["x", *(t.name for t in temps), "y"]
    calls = [("double", names[i], names[i + 1]) if i < 3 else ("copy", names[i], names[i + 1]) for i in range(count)]
    copy = kernel_of("""
        kernel @copy(%x: f32[4] in, %y: f32[4] out) {
          for i in 4 serial {
            v: f32 = load %x[i]
            store %y[i] = v
          }
        }""")
    storages = (storage("x", "input"), storage("y", "output"), *temps)
    long = plan_memory(Program("p", storages, (DOUBLE, copy), tuple(Call(k, tuple(a)) for k, *a in calls)))
    text = emitted(long, WIDE)
    assert len(re.findall(r"define internal void @graphc_calls\d+\(", text)) == 2
    assert max(f.count("call void") for f in text.split("define ")) < count
    (y,) = run(long, np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(y, 8 * np.arange(4, dtype=np.float32))


def test_a_call_of_small_sizes_is_shared_by_fewer_threads():
    text = """\
dim n = 1..100000 hint 65536
program @f {
  input %x: f32[n,64]
  output %y: f32[n,64]

  kernel @k(%x: f32[64*n] in, %y: f32[64*n] out) {
    for i in n parallel {
      for j in 64 parallel {
        a: f32 = load %x[64*i + j]
        b: f32 = sqrt(a)
        store %y[64*i + j] = b
      }
    }
  }

  call @k(%x, %y)
}
"""
    target = target_named("avx2")
    program = plan_memory(schedule_program(parse_program(text), target))
    execution = plan_execution(program, target)
    parts = execution.threads.parts
    assert execution.threads.most == target.costs.threads.most
    ((dimension, few),) = [(d, at(parts, {d: 16})) for d in dims_of_program(program).values()]
    assert few == 0 and at(parts, {dimension: 65536}) >= 2
    assert at(parts, {dimension: 65536}) == pytest.approx(2 * at(parts, {dimension: 32768}), abs=1)
    entry = emit_program(program, target, execution)
    assert "%count = call i64 @llvm.umin.i64(i64 %allowed, i64 %z" in entry
