"""Loop transformations keep the meaning of nests: merging, hoisting, copying; block sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.lanes.choose import vectorise
from graphc.codegen.schedule.loops.index_set_splitting import split_index_sets
from graphc.codegen.schedule.loops.transform import (
    block_index,
    blocks,
    drop_trivial,
    hoist,
    interleave,
    merge_loops,
    sort_loops,
    split_loops,
    wrap,
)
from graphc.ir.kernel.index import Axis, Index, as_index
from graphc.ir.kernel.interpret import run_kernel
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Kernel, Let, Load, Loop, Store, walk
from tests.codegen.kernel_native import check_equivalent, copying, kernel_of


def loops_of(kernel: Kernel) -> list[tuple[int, str]]:
    """(extent, kind) of every loop, outside in."""
    return [(s.axis.extent, s.kind) for s, _ in walk(kernel.body) if isinstance(s, Loop)]


def merged(kernel: Kernel) -> Kernel:
    result = replace(kernel, body=merge_loops(kernel.body, Names()))
    check_equivalent(kernel, result)
    return result


def without_trivial(kernel: Kernel) -> Kernel:
    result = replace(kernel, body=drop_trivial(kernel.body, Names()))
    check_equivalent(kernel, result)
    return result


def hoisted(kernel: Kernel) -> Kernel:
    stored = {s.buffer for s, _ in walk(kernel.body) if isinstance(s, Store)}
    result = replace(kernel, body=hoist(kernel.body, stored))
    check_equivalent(kernel, result)
    return result


ENDING = """
    kernel @k(%n: i64[3] in, %x: f32[48] in, %y: f32[48] out) {
      for i in 3 parallel {
        for f in 16 parallel {
          store %y[16*i + f] = f32(-1.0)
        }
        n: i64 = load %n[i]
        for j in 1 serial until n {
          for k in 16 serial until n {
            v: f32 = load %x[16*i + k]
            w: f32 = load %x[16*i]
            d: f32 = add(v, w)
            store %y[16*i + k // 4 * 4 + k % 4] = d
          }
        }
      }
    }"""
TRANSFORMS = {
    "merging": lambda body: merge_loops(body, Names()),
    "sorting": sort_loops,
    "splitting": lambda body: split_loops(body, Names()),
    "hoisting": lambda body: hoist(body, {"y"}),
    "dropping": lambda body: drop_trivial(body, Names()),
    "index sets": lambda body: split_index_sets(body, Names(), target_named("avx2").costs.loops),
    "interleaving": lambda body: interleave(body, 4, Names()),
    "lanes": lambda body: vectorise(body, target_named("avx2"), Names()),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_loop_that_ends_early_still_does(name: str):
    """The canonical form dropped the end."""
    kernel = kernel_of(ENDING)
    result = replace(kernel, body=TRANSFORMS[name](kernel.body))
    arrays = [np.array(x) for x in ([0, 3, 20], np.arange(48, dtype=np.float32), np.zeros(48, np.float32))]
    expected, actual = ([a.copy() for a in arrays] for _ in range(2))
    run_kernel(kernel, dict(zip("nxy", expected, strict=True)))
    run_kernel(result, dict(zip("nxy", actual, strict=True)))
    np.testing.assert_array_equal(actual[2], expected[2])
    assert actual[2].tolist().count(-1.0) == 16 + 13


# ---- merging


THREE_LOOPS = "i in 2 parallel, j in 3 parallel, k in 4 parallel"


def test_a_dense_nest_becomes_one_loop():
    kernel = copying(THREE_LOOPS, "12*i + 4*j + k", "12*i + 4*j + k", (24, 24))
    assert loops_of(merged(kernel)) == [(24, "parallel")]


def test_a_broadcast_axis_stays():
    kernel = copying(THREE_LOOPS, "k", "12*i + 4*j + k", (4, 24))
    assert loops_of(merged(kernel)) == [(6, "parallel"), (4, "parallel")]


def test_a_quotient_of_what_becomes_one_axis():
    kernel = copying("j in 3 parallel, k in 4 parallel", "(4*j + k) // 3", "4*j + k", (12, 12))
    assert loops_of(merged(kernel)) == [(12, "parallel")]


@pytest.mark.parametrize(
    "index,guard",
    [
        ("(8*j + k) // 3", ""),
        ("j + 3*k", ""),
        ("4*j + k", "if 0 <= j < 2 else f32(0.0)"),
        ("4*j + k + 1", "if 0 <= k < 3 else f32(0.0)"),
    ],
)
def test_loops_that_do_not_merge(index: str, guard: str):
    kernel = copying("j in 3 parallel, k in 4 parallel", index, "4*j + k", (12, 12), guard=guard)
    assert len(loops_of(merged(kernel))) == 2


def test_kinds_do_not_mix():
    kernel = kernel_of("""
        kernel @k(%x: f32[12] in, %y: f32[3] out) {
          for j in 3 parallel {
            acc a: f32 = add f32(0.0)
            for k in 2 reduce {
              for l in 2 reduce {
                v: f32 = load %x[4*j + 2*k + l]
                update a with v
              }
            }
            r = read a
            store %y[j] = r
          }
        }""")
    assert loops_of(merged(kernel)) == [(3, "parallel"), (4, "reduce")]


def test_loops_that_never_run_go():
    kernel = kernel_of("""
        kernel @k(%x: f32[0] in, %y: f32[1] out) {
          acc a: f32 = add f32(2.0)
          for k in 0 reduce {
            v: f32 = load %x[k]
            update a with v
          }
          r = read a
          store %y[0] = r
        }""")
    result = without_trivial(kernel)
    assert not loops_of(result) and not any(isinstance(s, Load) for s in result.body)


def test_loops_of_one_iteration_go():
    kernel = copying("i in 1 parallel, j in 4 parallel, k in 1 parallel", "4*i + j + k", "4*i + j + k", (4, 4))
    assert loops_of(without_trivial(kernel)) == [(4, "parallel")]


# ---- invariants


def test_invariants_move_out_as_far_as_they_can():
    kernel = kernel_of("""
        kernel @k(%x: f32[4] in, %y: f32[12] out) {
          for i in 4 parallel {
            for j in 3 parallel {
              v: f32 = load %x[i]
              w: f32 = mul(v, f32(2.0))
              u: f32 = add(f32(1.5), f32(0.5))
              s: f32 = add(w, u)
              store %y[3*i + j] = s
            }
          }
        }""")
    result = hoisted(kernel)
    depth = {s.name: len(loops) for s, loops in walk(result.body) if isinstance(s, (Let, Load))}
    assert depth == {"v": 1, "w": 1, "u": 0, "s": 1}


def test_reads_of_what_the_kernel_writes_and_guarded_reads_stay():
    kernel = kernel_of("""
        kernel @k(%x: f32[4] in, %y: f32[4] inout) {
          for i in 4 serial {
            for j in 3 serial {
              v: f32 = load %y[i]
              g: f32 = load %x[i + 1] if 0 <= i < 3 else f32(0.5)
              w: f32 = add(v, g)
              store %y[i] = w
            }
          }
        }""")
    result = hoisted(kernel)
    assert {s.name: len(loops) for s, loops in walk(result.body) if isinstance(s, Load)} == {"v": 2, "g": 2}


def test_a_dynamic_index_keeps_its_load_behind_it():
    kernel = kernel_of("""
        kernel @k(%i: i64[4] in, %x: f32[5] in, %y: f32[4] out) {
          for i in 4 parallel {
            a: i64 = load %i[i]
            b: i64 = max(a, i64(0))
            c: i64 = min(b, i64(4))
            v: f32 = load %x[[c:0..4]]
            store %y[i] = v
          }
        }""")
    hoisted(kernel)


# ---- copying


# ---- blocks


@given(st.integers(0, 300), st.integers(1, 40))
def test_blocks_cover_an_extent_once_with_nearly_equal_sizes(extent: int, largest: int):
    runs = blocks(extent, largest)
    covered = [start + n * size + k for start, number, size in runs for n in range(number) for k in range(size)]
    assert covered == list(range(extent))
    sizes = {size for _, _, size in runs}
    assert all(size <= largest for size in sizes) and (not sizes or max(sizes) - min(sizes) <= 1)


def test_blocks_of_49_rows():
    assert blocks(49, 14) == [(0, 1, 13), (13, 3, 12)]


def test_wrapping_leaves_out_single_iterations_but_keeps_a_vector_of_one_lane():
    body = (Store("y", as_index(0), "v"),)
    axes = [(Axis("a", 1), "parallel"), (Axis("b", 3), "parallel"), (Axis("c", 1), "vector")]
    (outer,) = wrap(axes, body)
    assert isinstance(outer, Loop) and outer.axis.extent == 3
    assert isinstance(outer.body[0], Loop) and outer.body[0].kind == "vector"


def test_block_index():
    a, b = Axis("a", 3), Axis("b", 4)
    assert block_index(5, (a, 4), (b, 1)) == Index(((a, 4), (b, 1)), 5)
