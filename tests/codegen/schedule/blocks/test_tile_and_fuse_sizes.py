"""Loops over named dimensions around calls: of a temporary a tile exists at a time, whatever the sizes are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphc.codegen.llvm.entry import THREADS
from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.blocks.tile_and_fuse import tile_and_fuse
from graphc.codegen.schedule.pipeline import schedule_program
from graphc.compiler.compile import compile_stages, load_compiled
from graphc.compiler.stages import Stages
from graphc.ir.graph.interpret import bind as bind_graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.graph.parse import parse_graph
from graphc.ir.kernel.dims import dims_of_program
from graphc.ir.kernel.parse import parse_program
from graphc.ir.kernel.statements import Program
from graphc.ir.kernel.text import print_program
from tests.codegen.sized import check_program, check_schedule
from tests.runtime.threaded import SHARED, thread_count

ATTENTION = """\
dim batch = 1..5 hint 4
dim time = 1..40 hint 16
program @attention {
  input %q: f32[batch,time,3,8]
  input %k: f32[batch,time,3,8]
  input %v: f32[batch,time,3,8]
  output %out0: f32[batch,3,time,8]
  temp %s: f32[batch,3,time,time]
  temp %p: f32[batch,3,time,time]

  kernel @k0(%b0: f32[batch*time*24] in, %b1: f32[batch*time*24] in, %b2: f32[batch*time*time*3] out) {
    for i0 in batch parallel {
      for i1 in 3 parallel {
        for i2 in time parallel {
          for i3 in time parallel {
            acc acc1: f32 = add f32(0.0)
            for i4 in 8 reduce {
              v2: f32 = load %b0[24*time*i0 + 8*i1 + 24*i2 + i4]
              v3: f32 = load %b1[24*time*i0 + 8*i1 + 24*i3 + i4]
              v4: f32 = mul(v2, v3)
              update acc1 with v4
            }
            v5 = read acc1
            store %b2[3*time*time*i0 + time*time*i1 + time*i2 + i3] = v5
          }
        }
      }
    }
  }

  kernel @k1(%b0: f32[batch*time*time*3] in, %b1: f32[batch*time*time*3] out, %s0: f32[time] scratch) {
    for i0 in batch parallel {
      for i1 in 3 parallel {
        for i2 in time parallel {
          acc acc1: f32 = max f32(-inf)
          for i3 in time reduce {
            v2: f32 = load %b0[3*time*time*i0 + time*time*i1 + time*i2 + i3]
            update acc1 with v2
          }
          v3 = read acc1
          acc acc4: f32 = add f32(0.0)
          for i4 in time reduce {
            v5: f32 = load %b0[3*time*time*i0 + time*time*i1 + time*i2 + i4]
            v6: f32 = sub(v5, v3)
            v7: f32 = exp(v6)
            store %s0[i4] = v7
            update acc4 with v7
          }
          v8 = read acc4
          for i5 in time parallel {
            v9: f32 = load %s0[i5]
            v10: f32 = div(v9, v8)
            store %b1[3*time*time*i0 + time*time*i1 + time*i2 + i5] = v10
          }
        }
      }
    }
  }

  kernel @k2(%b0: f32[batch*time*time*3] in, %b1: f32[batch*time*24] in, %b2: f32[batch*time*24] out) {
    for i0 in batch parallel {
      for i1 in 3 parallel {
        for i2 in time parallel {
          for i3 in 8 parallel {
            acc acc1: f32 = add f32(0.0)
            for i4 in time reduce {
              v2: f32 = load %b0[3*time*time*i0 + time*time*i1 + time*i2 + i4]
              v3: f32 = load %b1[24*time*i0 + 8*i1 + i3 + 24*i4]
              v4: f32 = mul(v2, v3)
              update acc1 with v4
            }
            v5 = read acc1
            store %b2[24*time*i0 + 8*time*i1 + 8*i2 + i3] = v5
          }
        }
      }
    }
  }

  call @k0(%q, %k, %s)
  call @k1(%s, %p)
  call @k2(%p, %v, %out0)
}
"""
GRAPH = """
dim batch = 1..5 hint 4
dim time = 1..40 hint 16
graph @attention(%q: f32[batch,time,3,8], %k: f32[batch,time,3,8], %v: f32[batch,time,3,8]) -> (f32[batch,3,time,8]) {
  %qt = transpose(%q) {permutation=[0,2,1,3]} : f32[batch,3,time,8]
  %kt = transpose(%k) {permutation=[0,2,1,3]} : f32[batch,3,time,8]
  %vt = transpose(%v) {permutation=[0,2,1,3]} : f32[batch,3,time,8]
  %s = matmul(%qt, %kt) {transpose_b=true} : f32[batch,3,time,time]
  %m = max(%s) {axes=[3], keepdims=true} : f32[batch,3,time,1]
  %d = sub(%s, %m) : f32[batch,3,time,time]
  %e = exp(%d) : f32[batch,3,time,time]
  %t = sum(%e) {axes=[3], keepdims=true} : f32[batch,3,time,1]
  %p = div(%e, %t) : f32[batch,3,time,time]
  %o = matmul(%p, %vt) : f32[batch,3,time,8]
  return %o
}
"""
SIZES = [{"batch": b, "time": t} for b, t in [(1, 1), (5, 3), (2, 7), (2, 8), (1, 9), (4, 16), (1, 17), (2, 40)]]


def small(nbytes: int):
    """A machine with a second cache of that size."""
    return replace(target_named("avx512"), l2_bytes=nbytes)


def loops(program: Program) -> set[tuple[str, ...]]:
    return {tuple(str(a.extent) for a in c.loops) for c in program.calls}


TILES = ("batch", "3", "((time + 7) // 8) - 1")
"""Loops around all tiles of eight queries but the last one."""


@pytest.mark.parametrize(
    ("nbytes", "expected", "elements"),
    [
        (4000, {TILES, TILES[:2]}, "8*time"),
        (20000, {TILES[:1]}, "3*time*time"),
        (1 << 20, {()}, "3*batch*time*time"),
    ],
)
def test_attention_holds_the_scores_of_a_batch_or_of_a_tile_of_queries(
    nbytes: int, expected: set[tuple[str, ...]], elements: str
):
    program = parse_program(ATTENTION)
    tiled = tile_and_fuse(program, small(nbytes))
    assert loops(tiled) == expected
    assert str(tiled.storage("s").size) == elements
    assert parse_program(print_program(tiled)) == tiled
    check_program(program, tiled, SIZES)


def test_all_tiles_run_the_same_kernels():
    tiled = tile_and_fuse(parse_program(ATTENTION), small(4000))
    full, last = tiled.calls[:3], tiled.calls[3:]
    assert [c.kernel for c in full] == [c.kernel for c in last]
    assert {str(size) for c in full for _, size in c.sizes} == {"8"}
    assert {str(size) for c in last for _, size in c.sizes} == {"-8*((time + 7) // 8) + time + 8"}
    assert list(dims_of_program(tiled)) == ["batch", "time"]


def test_a_loop_that_may_have_no_iteration_is_not_cut_into_tiles_and_says_so():
    skipped: list[str] = []
    text = ATTENTION.replace("dim time = 1..40", "dim time = 0..40")
    assert loops(tile_and_fuse(parse_program(text), small(4000), skipped)) == {()}
    assert [r for r in skipped if "no loop around them, for " in r] == skipped != []


@pytest.mark.parametrize("nbytes", [4000, 20000, 1 << 20])
def test_the_whole_schedule_of_attention_is_right_at_every_size(nbytes: int):
    check_schedule(parse_program(ATTENTION), small(nbytes), SIZES)


def test_keys_are_packed_once_for_all_tiles_of_a_head():
    text = ATTENTION.replace("dim time = 1..40 hint 16", "dim time = 1..400 hint 200")
    program = schedule_program(parse_program(text), small(500_000))
    assert len(loops(program)) == 2
    keys = [c for c in program.calls if c.kernel.endswith("_pack") and c.args[0] == "k"]
    (copy,) = {c.args[1] for c in keys}
    assert len(keys) == 1
    assert len([c for c in program.calls if c not in keys and copy in c.args]) == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_share_tiles(threads: int):
    graph = parse_graph(GRAPH)
    compiled = compile_stages(Stages(graph, target=replace(SHARED, l2_bytes=4000)))
    call, random = load_compiled(compiled), np.random.default_rng(0)
    assert THREADS.encode() in compiled.object
    with thread_count(threads):
        for time in (1, 7, 8, 9, 16, 17, 40, 8):
            arrays = [random.standard_normal((2, time, 3, 8), dtype=np.float32) for _ in range(3)]
            for _ in range(20):
                (got,) = call.run(arrays, ())
                expected = evaluate(bind_graph(graph, {"batch": 2, "time": time}), arrays)
                np.testing.assert_allclose(got, expected[0], rtol=1e-4, atol=1e-5)
