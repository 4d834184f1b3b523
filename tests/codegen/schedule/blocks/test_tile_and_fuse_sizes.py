"""Loops over named dimensions around calls: of a temporary a tile exists at a time, whatever the sizes are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.blocks.tile_and_fuse import tile_and_fuse
from graphc.ir.kernel.parse import parse_program
from graphc.ir.kernel.statements import Program
from tests.codegen.sized import check_program, check_schedule

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
SIZES = [{"batch": b, "time": t} for b, t in [(1, 1), (5, 3), (2, 8), (4, 16), (1, 17), (2, 40)]]


def small(nbytes: int):
    """A machine with a second cache of that size."""
    return replace(target_named("avx512"), l2_bytes=nbytes)


def loops(program: Program) -> set[tuple[str, ...]]:
    return {tuple(str(a.extent) for a in c.loops) for c in program.calls}


@pytest.mark.parametrize(
    ("nbytes", "expected"),
    [(2000, ("batch", "3")), (12000, ("batch",)), (1 << 20, ())],
)
def test_attention_holds_the_scores_of_a_batch_or_of_a_head(nbytes: int, expected: tuple[str, ...]):
    program = parse_program(ATTENTION)
    tiled = tile_and_fuse(program, small(nbytes))
    assert loops(tiled) == {expected}
    shape = {"": "3*batch*time*time", "batch": "3*time*time", "batch,3": "time*time"}[",".join(expected)]
    assert str(tiled.storage("s").size) == shape
    check_program(program, tiled, SIZES)


def test_a_loop_that_would_need_tiles_of_its_own_stays_and_says_so():
    skipped: list[str] = []
    tile_and_fuse(parse_program(ATTENTION), small(2000), skipped)
    assert [r for r in skipped if "k0, k1, k2: no loop around them, for time iterations" in r] == skipped != []


@pytest.mark.parametrize("nbytes", [2000, 12000, 1 << 20])
def test_the_whole_schedule_of_attention_is_right_at_every_size(nbytes: int):
    check_schedule(parse_program(ATTENTION), small(nbytes), SIZES)
