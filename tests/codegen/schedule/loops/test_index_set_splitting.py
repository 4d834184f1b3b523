"""Loops cut at their conditions: what is left, and that it computes the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphc.codegen.machine.costs import DEFAULT
from graphc.codegen.schedule.lanes.choose import vectorise
from graphc.codegen.schedule.loops.index_set_splitting import split_index_sets
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Kernel, Let, Load, Loop, Store, walk
from graphc.ir.kernel.verify import verify_kernel
from tests.codegen.kernel_native import check_equivalent, check_native, kernel_of, random_memory
from tests.native import TARGETS, target_or_skip


def split(kernel: Kernel) -> Kernel:
    """The kernel with its loops cut, verified, and computing the same."""
    result = Kernel(kernel.name, kernel.buffers, split_index_sets(kernel.body, Names("z"), DEFAULT.loops))
    verify_kernel(result)
    memory = random_memory(kernel)
    memory = {name: np.abs(array) % 4 if array.dtype.kind == "i" else array for name, array in memory.items()}
    check_equivalent(kernel, result, memory)
    return result


def count(kernel: Kernel, kind: type) -> int:
    return sum(isinstance(s, kind) for s, _ in walk(kernel.body))


def concat(first: int, second: int) -> Kernel:
    total = first + second
    return kernel_of(
        f"""
        kernel @k(%x: f32[{first}] in, %y: f32[{second}] in, %z: f32[{total}] out) {{
          for i in {total} parallel {{
            a: f32 = load %x[i] if 0 <= i < {first} else f32(0.0)
            b: f32 = load %y[i - {first}] if {first} <= i < {total} else f32(0.0)
            n: i64 = index i
            c: bool = lt(n, i64({first}))
            v: f32 = select(c, a, b)
            store %z[i] = v
          }}
        }}"""
    )


def test_concat_becomes_copies():
    result = split(concat(200, 100))
    assert [s.axis.extent for s, _ in walk(result.body) if isinstance(s, Loop)] == [200, 100]
    assert count(result, Let) == 0 and count(result, Load) == count(result, Store) == 2
    assert not any(s.guard for s, _ in walk(result.body) if isinstance(s, Load))


def test_short_loops_along_memory_stay_whole():
    kernel = concat(DEFAULT.loops.lane_extent // 2, DEFAULT.loops.lane_extent // 2 - 1)
    assert split(kernel).body == kernel.body


def test_padding_of_rows():
    result = split(
        kernel_of(
            """
            kernel @k(%x: f32[12] in, %y: f32[30] out) {
              for i in 5 parallel {
                for j in 6 parallel {
                  v: f32 = load %x[4*i + j - 5] if 1 <= i < 4 and 1 <= j < 5 else f32(0.5)
                  store %y[6*i + j] = v
                }
              }
            }"""
        )
    )
    loads = [(s, loops) for s, loops in walk(result.body) if isinstance(s, Load)]
    assert len(loads) == 1 and len(loads[0][0].guard) == 1 and count(result, Store) == 3


@pytest.mark.parametrize("op, first", [("lt", 5), ("le", 6), ("gt", 6), ("ge", 5)])
def test_comparisons(op: str, first: int):
    result = split(
        kernel_of(
            f"""
            kernel @k(%y: f32[{2 * 9}] out) {{
              for i in 9 parallel {{
                n: i64 = index i
                c: bool = {op}(n, i64(5))
                v: f32 = select(c, f32(1.0), f32(2.0))
                store %y[2*i] = v
                store %y[2*i + 1] = v
              }}
            }}"""
        )
    )
    assert [s.axis.extent for s in result.body if isinstance(s, Loop)] == [first, 9 - first]
    assert count(result, Let) == 0


def test_stores_that_never_happen_go():
    result = split(
        kernel_of(
            """
            kernel @k(%x: f32[9] in, %y: f32[18] inout) {
              for i in 9 parallel {
                v: f32 = load %x[i]
                store %y[2*i] = v if 3 <= i < 7
              }
            }"""
        )
    )
    (loop,) = result.body
    assert isinstance(loop, Loop) and loop.axis.extent == 4 and count(result, Store) == 1


def test_scalars_in_indices_stay():
    result = split(
        kernel_of(
            """
            kernel @k(%x: i64[9] in, %t: f32[4] in, %y: f32[18] out) {
              for i in 9 parallel {
                p: i64 = load %x[i] if 2 <= i < 9 else i64(0)
                q: i64 = max(p, i64(0))
                r: i64 = min(q, i64(3))
                v: f32 = load %t[[r:0..3]]
                store %y[2*i] = v
                store %y[2*i + 1] = v
              }
            }"""
        )
    )
    assert [s.axis.extent for s in result.body if isinstance(s, Loop)] == [2, 7]


def test_a_reduction_over_joined_operands_is_cut():
    kernel = kernel_of(
        """
        kernel @k(%x: f32[300] in, %y: f32[300] in, %z: f32[1] out) {
          acc a: f32 = max f32(-inf)
          for i in 300 reduce {
            for j in 2 reduce {
              v: f32 = load %x[i] if 0 <= j < 1 else f32(0.0)
              w: f32 = load %y[i] if 1 <= j < 2 else f32(0.0)
              n: i64 = index j
              c: bool = lt(n, i64(1))
              s: f32 = select(c, v, w)
              update a with s
            }
          }
          r = read a
          store %z[0] = r
        }"""
    )
    result = split(kernel)
    assert [s.axis.extent for s, _ in walk(result.body) if isinstance(s, Loop)] == [300]
    assert count(result, Load) == 2 and count(result, Let) == 0
    assert not any(s.guard for s, _ in walk(result.body) if isinstance(s, Load))


@pytest.mark.parametrize("name", TARGETS)
def test_pieces_of_a_reduction_choose_lanes_alone(name: str):
    """One piece is a number, the other becomes lanes, and both update the accumulator."""
    target = target_or_skip(name)
    kernel = kernel_of(
        """
        kernel @k(%x: i32[1] in, %y: i32[4] in, %z: i32[1] out) {
          acc a: i32 = add i32(0)
          for i in 5 reduce {
            v: i32 = load %x[i] if 0 <= i < 1 else i32(0)
            w: i32 = load %y[i - 1] if 1 <= i < 5 else i32(0)
            n: i64 = index i
            c: bool = lt(n, i64(1))
            s: i32 = select(c, v, w)
            t: i32 = mul(s, s)
            u: i32 = mul(t, s)
            update a with u
          }
          r = read a
          store %z[0] = r
        }"""
    )
    result = split(kernel)
    pieces = [s for s, _ in walk(result.body) if isinstance(s, Loop)]
    assert [(s.axis.extent, s.kind) for s in pieces] == [(4, "reduce")]
    vectorised = replace(result, body=vectorise(result.body, target, Names("w")))
    assert any(isinstance(s, Loop) and s.kind == "vector" for s, _ in walk(vectorised.body))
    check_native(vectorised, target)


def test_reductions_and_serial_loops_stay_whole():
    kernel = kernel_of(
        """
        kernel @k(%x: f32[300] in, %y: f32[1] out) {
          acc a: f32 = add f32(0.0)
          for i in 300 reduce {
            v: f32 = load %x[i] if 0 <= i < 200 else f32(0.0)
            update a with v
          }
          r = read a
          store %y[0] = r
        }"""
    )
    assert split(kernel).body == kernel.body


def test_windows_over_padding_are_written_out():
    """Rows inside of an image ask nothing; in the first and the last one, taps of the frame are gone."""
    kernel = kernel_of("""
        kernel @k(%a: f32[560] in, %c: f32[560] out) {
          for i in 20 parallel {
            for j in 28 parallel {
              acc s: f32 = add f32(0.0)
              for y in 3 reduce {
                for x in 3 reduce {
            v: f32 = load %a[28*i + 28*y + j + x - 29] if 0 <= i + y - 1 < 20 and 0 <= j + x - 1 < 28 else f32(0.0)
                  update s with v
                }
              }
              t = read s
              store %c[28*i + j] = t
            }
          }
        }""")
    body = split(kernel).body
    assert not any(isinstance(s, Loop) and s.kind == "reduce" for s, _ in walk(body))
    guards = [s.guard for s, _ in walk(body) if isinstance(s, Load)]
    assert max(len(g) for g in guards) == 1, "only the columns are still asked for"
