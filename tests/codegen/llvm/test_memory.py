"""Addresses, loads and stores: strides, guards, remainders of negative numbers, indices that are data."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.codegen.llvm.emit import emit_kernel
from graphc.codegen.machine.target import target_named
from tests.codegen.kernel_native import check_native, copying, kernel_of
from tests.native import TARGETS, target_or_skip


@pytest.fixture(params=TARGETS)
def machine(request: pytest.FixtureRequest):
    return target_or_skip(request.param)


@pytest.mark.parametrize("kind", ["serial", "unroll", "vector"])
@pytest.mark.parametrize(
    "size,index",
    [
        (12, "i"),
        (36, "3*i"),
        (36, "3*i + 2"),
        (24, "-2*i + 22"),
        (12, "-1*i + 11"),
        (6, "(i // 2)"),
        (5, "(i % 5)"),
        (20, "(i % 5) + 4*(i // 4)"),
        (9, "((i - 5) // 3) + 4"),
        (9, "((i - 7) % 4)"),
        (9, "((-1*i + 3) // 4) + 3"),
        (30, "((2*i + 1) // 3) + ((i + 1) % 2)"),
        (1, "0"),
    ],
)
def test_index_expressions(size: int, index: str, kind: str, machine):
    kernel = kernel_of(f"""
        kernel @k(%x: f32[{size}] in, %y: f32[12] out, %n: i64[12] out, %m: i32[12] out) {{
          for i in 12 {kind} {{
            v: f32 = load %x[{index}]
            n: i64 = index {index}
            m: i32 = index {index}
            store %y[i] = v
            store %n[i] = n
            store %m[i] = m
          }}
        }}""")
    check_native(kernel, machine)


@pytest.mark.parametrize("kind", ["serial", "unroll", "vector"])
@pytest.mark.parametrize(
    "guard",
    [
        "2 <= i < 9",
        "0 <= i < 12",
        "1 <= (i // 3) < 3",
        "1 <= (i % 4) < 3",
        "0 <= i - 4 < 5 and 0 <= (i % 2) < 1",
        "3 <= o < 5",
        "1 <= o < 4 and 2 <= i < 9",
    ],
)
def test_guards_protect_memory(guard: str, kind: str, machine):
    """A guard also stands where its index leaves the buffer."""
    kernel = kernel_of(f"""
        kernel @k(%x: f32[99] in, %s: f32[7] in, %y: f32[72] out, %z: f32[72] out, %w: bool[72] inout) {{
          for o in 6 serial {{
            for i in 12 {kind} {{
              v: f32 = load %x[12*o + i] if {guard} else f32(1.5)
              u: f32 = load %s[o] if {guard} else f32(-1.5)
              t: f32 = load %x[3*i + o] if {guard} else f32(2.5)
              a: f32 = add(v, u)
              b: f32 = add(a, t)
              store %y[12*o + i] = b
              store %z[12*o + i] = v if {guard}
              c: bool = lt(v, f32(0.0))
              store %w[12*o + i] = c if {guard}
            }}
          }}
        }}""")
    check_native(kernel, machine)


@pytest.mark.parametrize(("wide", "narrow"), [("i32", "u8"), ("i32", "i8"), ("i64", "i32"), ("i64", "u8")])
@pytest.mark.parametrize("guard", ["0 <= l < 1", "3 <= l < 4", "2 <= o < 3"])
def test_a_store_of_one_narrow_lane_leaves_its_neighbours(wide: str, narrow: str, guard: str, machine):
    """LLVM 22 would store the lane before it is truncated, with -mcpu=x86-64-v4."""
    kernel = kernel_of(f"""
        kernel @k(%x: {wide}[64] in, %y: {narrow}[64] inout) {{
          for o in 4 serial {{
            for l in 16 vector {{
              a: {wide} = load %x[16*o + l]
              b: {wide} = add(a, a)
              c: {narrow} = cast(b)
              store %y[16*o + l] = c if {guard}
            }}
          }}
        }}""")
    check_native(kernel, machine)


def test_a_guarded_index_outside_of_its_buffer(machine):
    check_native(copying("i in 12 vector", "i - 2", "i", (8, 12), guard="if 2 <= i < 10 else f32(0.0)"), machine)


@pytest.mark.parametrize("dtype", ["i64", "i32", "u8", "i8"])
@pytest.mark.parametrize("kind", ["serial", "unroll", "vector"])
def test_indices_that_are_data(kind: str, dtype: str, machine):
    kernel = kernel_of(f"""
        kernel @k(%i: {dtype}[10] in, %x: f32[40] in, %y: f32[10] out) {{
          for i in 10 {kind} {{
            a: {dtype} = load %i[i]
            b: {dtype} = max(a, {dtype}(0))
            c: {dtype} = min(b, {dtype}(9))
            v: f32 = load %x[[c:0..9] + 10*((i + 1) // 4)]
            store %y[i] = v
          }}
        }}""")
    positions = np.array([0, 9, 3, 3, 120, 1, 2, 8, 7, 100]).astype({"i64": "i8"}.get(dtype, "u8"))
    memory = {
        "i": positions.astype({"i64": np.int64, "i32": np.int32, "u8": np.uint8, "i8": np.int8}[dtype]),
        "x": np.arange(40, dtype=np.float32),
        "y": np.zeros(10, np.float32),
    }
    check_native(kernel, machine, memory)


@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "bool", "i64"])
@pytest.mark.parametrize("stride", [1, 2, 3, 4, 7])
def test_strided_loads_and_stores(stride: int, dtype: str, machine):
    n = 13
    size = n * stride
    kernel = copying(f"l in {n} vector", f"{stride}*l", f"{stride}*l + {stride - 1}", (size, size), dtype)
    check_native(kernel, machine)


def test_memory_may_be_asked_for_beyond_a_buffer(machine):
    kernel = kernel_of("""
        kernel @k(%x: f32[40] in, %y: f32[40] out) {
          for i in 5 parallel {
            for u in 2 unroll {
              for l in 4 vector {
                prefetch %x[8*i + 4*u + 4096]
                v: f32 = load %x[8*i + 4*u + l]
                store %y[8*i + 4*u + l] = v
              }
            }
          }
        }""")
    check_native(kernel, machine)


def test_bools_are_bytes(machine):
    kernel = kernel_of("""
        kernel @k(%x: bool[9] in, %y: bool[9] out, %n: bool[1] out) {
          for l in 9 vector {
            v: bool = load %x[l]
            w: bool = not(v)
            store %y[l] = w
          }
          u: bool = load %x[4]
          store %n[0] = u
        }""")
    got = check_native(kernel, machine)
    assert set(got["y"].view(np.uint8).tolist()) <= {0, 1}


def test_prefetches_and_masked_accesses_share_one_address():
    """Each copy takes one instruction for its address: a constant distance from that of the first one."""
    kernel = kernel_of("""
        kernel @k(%x: f32[999] in, %y: f32[999] out) {
          for o in 6 serial {
            for u in 4 unroll {
              for l in 13 vector {
                prefetch %y[l + 150*o + 13*u]
                v: f32 = load %x[l + 150*o + 13*u]
                store %y[l + 150*o + 13*u] = v
              }
            }
          }
        }""")
    text = emit_kernel(kernel, target_named("avx512"), {}).text
    assert text.count("llvm.prefetch") == text.count("llvm.masked.load") == 4
    assert text.count("getelementptr") == 2 * 4, text


@pytest.mark.parametrize("name,hidden", [("avx2", 0), ("neon", 1)])
def test_addresses_of_outer_loops_are_hidden_where_loops_are_strength_reduced(name: str, hidden: int):
    kernel = copying("o in 8 serial, i in 8 serial", "i + 8*o", "0", (64, 64))
    assert emit_kernel(kernel, target_named(name), {}).text.count("llvm.strip.invariant.group") == hidden


@pytest.mark.parametrize("lanes", range(2, 9))
def test_known_numbers_of_elements_are_stored_as_powers_of_two_for_avx2(lanes: int, machine):
    """Masked stores of AVX2 take about 20 operations on many processors."""
    kernel = kernel_of(f"""
        kernel @k(%x: f32[64] in, %y: f32[64] out) {{
          for i in 4 serial {{
            for l in {lanes} vector {{
              v: f32 = load %x[l + 9*i]
              store %y[l + 9*i + 1] = v
            }}
          }}
        }}""")
    check_native(kernel, machine)
    text = emit_kernel(kernel, target_named("avx2"), {}).text
    assert text.count("store ") == lanes.bit_count() and "masked.store" not in text
