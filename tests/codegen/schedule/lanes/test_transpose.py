"""Nests that read across and write along: square blocks with register transposes, and their rests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphc.codegen.machine.target import Target, target_named
from graphc.codegen.schedule.lanes.transpose import transposed_tiles
from graphc.ir.graph.parse import parse_graph
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Kernel, Loop, walk
from graphc.lowering.program import lower_graph
from tests.codegen.kernel_native import check_equivalent, check_scheduled, kernel_of
from tests.native import emitted, scheduled

WIDE = target_named("avx512")


def transpose(rows: int, columns: int, dtype: str = "f32", extra: str = "") -> Kernel:
    return kernel_of(f"""
        kernel @k(%x: {dtype}[{rows * columns}] in, %y: {dtype}[{rows * columns}] out) {{
          for i in {rows} parallel {{
            for j in {columns} parallel {{
              v: {dtype} = load %x[{rows}*j + i]
              {extra}
              store %y[{columns}*i + j] = {"w" if extra else "v"}
            }}
          }}
        }}""")


@pytest.mark.parametrize("rows,columns", [(16, 16), (19, 21), (5, 33), (33, 5), (64, 8), (8, 64), (3, 3), (40, 17)])
def test_sizes(rows: int, columns: int, machine: Target):
    for kernel in (transpose(rows, columns), transpose(rows, columns, extra="w: f32 = mul(v, f32(2.0))")):
        check_scheduled(kernel, machine)


@pytest.mark.parametrize("dtype", ["f64", "i32", "i64", "u8", "bool"])
def test_types(dtype: str, machine: Target):
    kernel = transpose(21, 19, dtype)
    check_scheduled(kernel, machine)


def tiles(kernel: Kernel) -> list[Loop] | None:
    (loop,) = kernel.body
    assert isinstance(loop, Loop)
    found = transposed_tiles(loop, WIDE, Names())
    if found is None:
        return None
    check_equivalent(kernel, replace(kernel, body=found))
    return [s for s, _ in walk(found) if isinstance(s, Loop)]


def test_a_block_is_as_high_as_wide():
    loops = tiles(transpose(64, 64))
    assert loops is not None
    assert {s.axis.extent for s in loops if s.kind == "unroll"} == {16}
    assert {s.axis.extent for s in loops if s.kind == "vector"} == {16}


def test_a_copy_is_no_transpose():
    kernel = kernel_of("""
        kernel @k(%x: f32[400] in, %y: f32[400] out) {
          for i in 20 parallel {
            for j in 20 parallel {
              v: f32 = load %x[20*i + j]
              store %y[20*i + j] = v
            }
          }
        }""")
    assert tiles(kernel) is None


def test_guards_and_reductions_have_no_such_form():
    kernel = kernel_of("""
        kernel @k(%x: f32[400] in, %y: f32[400] out) {
          for i in 20 parallel {
            for j in 20 parallel {
              v: f32 = load %x[20*j + i] if 1 <= i < 19 else f32(0.0)
              store %y[20*i + j] = v
            }
          }
        }""")
    assert tiles(kernel) is None


def test_an_image_is_turned_inside_of_a_frame_of_zeros():
    """The nest that turns stands beside others in a loop; no two loops share an axis."""
    kernel = kernel_of("""
        kernel @k(%x: f32[4096] in, %y: f32[4608] out) {
          for h in 8 parallel {
            for z in 32 parallel {
              store %y[576*h + z] = f32(0.0)
            }
            for w in 16 parallel {
              for c in 32 parallel {
                v: f32 = load %x[128*c + 16*h + w]
                store %y[576*h + 32*w + c + 32] = v
              }
            }
            for e in 32 parallel {
              store %y[576*h + e + 544] = f32(0.0)
            }
          }
        }""")
    scheduled = check_scheduled(kernel, target_named("avx512")).kernel("k")
    loops = [s for s, _ in walk(scheduled.body) if isinstance(s, Loop)]
    assert any(s.kind == "unroll" and s.axis.extent == 16 for s in loops), "a square block of registers"
    assert len({s.axis for s in loops}) == len(loops)


def test_copies_of_a_program_share_one_function():
    graph = parse_graph("""
        graph @turned(%x: f32[32,48], %y: f32[64,80], %z: f32[16,32]) -> (f32[48,32], f32[80,64], f32[32,16]) {
          %a = transpose(%x) {permutation=[1,0]} : f32[48,32]
          %b = transpose(%y) {permutation=[1,0]} : f32[80,64]
          %t = transpose(%z) {permutation=[1,0]} : f32[32,16]
          %c = mul(%t, f32(2.0)) : f32[32,16]
          return %a, %b, %c
        }""")
    shared, *kernels = emitted(scheduled(lower_graph(graph), WIDE), WIDE).split("define ")[1:]
    assert shared.startswith("internal void @graphc_turn.16.float(")
    assert [k.count("call void @graphc_turn.16.float(") for k in kernels] == [1, 1, 0, 0]
    assert [bool(k.count("shufflevector")) for k in kernels] == [False, False, True, False], "a product turns its own"
