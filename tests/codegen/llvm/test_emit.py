"""Kernels as LLVM functions: unrolled copies and lanes share loops, and what cannot be vectorised is refused."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from graphc.codegen.llvm.emit import emit_kernel
from graphc.codegen.machine.target import Target, target_named
from graphc.errors import CompileError
from graphc.ir.kernel.statements import Kernel
from tests.codegen.kernel_native import check_native, kernel_of
from tests.native import target_or_skip

WIDE, NARROW = target_named("avx512"), target_named("sse2")


def emitted(kernel: Kernel, name: str = "avx512") -> str:
    return emit_kernel(kernel, target_named(name), {}).text


BLOCK = """
    kernel @k(%a: f32[24] in, %b: f32[64] in, %c: f32[48] out) {
      for u in 3 unroll {
        for s in 2 unroll {
          for l in 8 vector {
            acc t: f32 = add f32(0.0)
            for k in 4 reduce {
              x: f32 = load %a[4*u + k]
              y: f32 = load %b[16*k + 8*s + l]
              p: f32 = mul(x, y)
              update t with p
            }
            r = read t
            store %c[16*u + 8*s + l] = r
          }
        }
      }
    }"""


def test_a_register_block_is_one_loop_with_one_multiply_add_per_copy():
    text = emitted(kernel_of(BLOCK))
    assert len(re.findall(r"br i1", text)) == 1
    assert len(re.findall(r"call <8 x float> @llvm\.fma", text)) == 6
    assert len(re.findall(r"load <8 x float>", text)) == 2, "columns are shared by the rows"
    assert len(re.findall(r"load float", text)) == 3, "rows are shared by the columns"


def test_no_fused_multiply_add_where_it_is_no_instruction():
    text = emitted(kernel_of(BLOCK), "sse2")
    assert "llvm.fma" not in text and len(re.findall(r"fadd <8 x float>", text)) == 6


def test_a_register_block_natively(machine: Target):
    check_native(kernel_of(BLOCK), machine)


def test_copies_of_which_one_does_not_vary_by_lane(machine: Target):
    kernel = kernel_of("""
        kernel @k(%x: f32[9] in, %i: i64[9] out, %y: f32[8] out) {
          for u in 2 unroll {
            for l in 4 vector {
              v: f32 = load %x[((l + 4*u) // 5)]
              n: i64 = index ((l + 4*u) // 5)
              store %y[4*u + l] = v
              store %i[4*u + l] = n
            }
          }
        }""")
    check_native(kernel, machine)


@pytest.mark.parametrize("lanes", [2, 3, 5, 7, 8, 13])
def test_lanes_of_any_number(lanes: int, machine: Target):
    kernel = kernel_of(f"""
        kernel @k(%x: f64[{lanes + 2}] in, %b: bool[{lanes}] in, %y: f64[{2 * lanes}] out, %c: bool[{lanes}] out) {{
          for l in {lanes} vector {{
            v: f64 = load %x[l + 1]
            g: f64 = load %x[l + 2] if 0 <= l < 2 else f64(-1.0)
            b: bool = load %b[l]
            s: f64 = select(b, v, g)
            n: bool = not(b)
            store %y[2*l] = s
            store %c[l] = n
          }}
        }}""")
    check_native(kernel, machine)


def test_values_of_outer_loops_are_computed_there():
    text = emitted(
        kernel_of("""
        kernel @k(%x: f32[12] in, %y: f32[12] out) {
          for i in 3 serial {
            for j in 4 serial {
              v: f32 = load %x[4*i + j]
              store %y[4*i + j] = v
            }
          }
        }""")
    )
    inner = text[text.rindex("phi i64") :]
    assert "mul nsw" not in inner


def test_a_loop_of_no_iterations_is_no_code():
    text = emitted(
        kernel_of("""
        kernel @k(%x: f32[4] in, %y: f32[4] out) {
          for i in 0 parallel {
            v: f32 = load %x[i]
            store %y[i] = v
          }
        }""")
    )
    assert "load" not in text and "br" not in text


def test_a_vector_loop_inside_another_is_refused():
    kernel = kernel_of("""
        kernel @k(%x: f32[16] in, %y: f32[16] out) {
          for i in 4 vector {
            for j in 4 vector {
              v: f32 = load %x[4*i + j]
              store %y[4*i + j] = v
            }
          }
        }""")
    with pytest.raises(CompileError, match="vector loop j inside another one"):
        emitted(kernel)


def test_colliding_lanes_of_a_combining_store_are_refused():
    kernel = kernel_of("""
        kernel @k(%x: f32[4] in, %y: f32[2] inout) {
          for i in 4 vector {
            v: f32 = load %x[i]
            store %y[(i // 2)] add= v
          }
        }""")
    with pytest.raises(CompileError, match="combining store to %y cannot be vectorised"):
        emitted(kernel)


def test_combining_stores(machine: Target):
    kernel = kernel_of("""
        kernel @k(%x: f32[24] in, %y: f32[12] inout, %z: i8[1] inout) {
          for i in 2 serial {
            for l in 12 vector {
              v: f32 = load %x[12*i + l]
              store %y[l] add= v if 0 <= l < 9
            }
            store %z[0] max= i8(7)
          }
        }""")
    check_native(kernel, machine)


def test_arguments_that_are_only_read_say_so():
    head = emitted(kernel_of(BLOCK)).splitlines()[0]
    assert head.startswith("define internal void @k(ptr noalias nocapture readonly %b0")
    assert head.count("readonly") == 2


def interleaving(lanes: int, copies: int, dtype: str) -> Kernel:
    return kernel_of(f"""
        kernel @k(%x: {dtype}[{copies * 40}] in, %y: {dtype}[{copies * lanes + 3}] out) {{
          for l in {lanes} vector {{
            for u in {copies} unroll {{
              v: {dtype} = load %x[l + 40*u]
              store %y[{copies}*l + u + 3] = v
            }}
          }}
        }}""")


@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "bool"])
@pytest.mark.parametrize(("lanes", "copies"), [(16, 2), (16, 3), (16, 4), (8, 4), (8, 2), (5, 3), (13, 2), (9, 4)])
def test_copies_between_lanes(lanes: int, copies: int, dtype: str, machine: Target):
    check_native(interleaving(lanes, copies, dtype), machine)


def test_copies_between_lanes_are_stored_as_whole_vectors():
    text = emitted(interleaving(16, 3, "f32"))
    assert text.count("store <16 x float>") == 3 and "scatter" not in text


def windows(lanes: int, taps: int, stride: int, copies: int = 1) -> Kernel:
    """Sums of ``taps`` neighbours, ``stride`` apart, with all loads of a step side by side."""
    size = stride * (lanes * copies - 1) + taps
    steps = "".join(
        f"""
              x{t}: f32 = load %x[{stride}*l + {stride * lanes}*u + {t}]
              update s with x{t}"""
        for t in range(taps)
    )
    return kernel_of(f"""
        kernel @k(%x: f32[{size}] in, %y: f32[{lanes * copies}] out) {{
          for u in {copies} unroll {{
            for l in {lanes} vector {{
              acc s: f32 = add f32(0.0){steps}
              r = read s
              store %y[l + {lanes}*u] = r
            }}
          }}
        }}""")


def test_windows_share_what_they_read():
    assert emitted(windows(16, 3, 2)).count("load <16 x float>") == 3, "33 elements"
    assert emitted(windows(16, 3, 2, 2)).count("load <16 x float>") == 5, "65 elements"
    assert emitted(windows(16, 1, 2, 2)).count("load <16 x float>") == 4, "no overlap"


def test_what_the_kernel_writes_is_read_by_each_load():
    text = emitted(
        kernel_of("""
        kernel @k(%x: f32[40] inout) {
          for l in 16 vector {
            a: f32 = load %x[2*l]
            b: f32 = load %x[2*l + 2]
            c: f32 = add(a, b)
            store %x[2*l + 1] = c
          }
        }""")
    )
    assert text.count("load <16 x float>") == 4


@pytest.mark.parametrize(
    ("lanes", "taps", "stride", "copies"), [(16, 3, 2, 1), (16, 5, 3, 2), (7, 3, 2, 1), (8, 4, 4, 3)]
)
def test_windows_natively(lanes: int, taps: int, stride: int, copies: int, machine: Target):
    check_native(windows(lanes, taps, stride, copies), machine)


def test_operands_are_read_where_they_are_multiplied_when_each_load_takes_a_register():
    usual = target_or_skip("avx2")
    target = replace(usual, memory_operands=False)
    together, apart = (emit_kernel(kernel_of(BLOCK), t, {}).text.splitlines() for t in (usual, target))
    assert sorted(map(_without_registers, together)) == sorted(map(_without_registers, apart))
    # The panel and all rows, or the panel and one of them.
    assert _most_loads_before_a_product(together) == 5
    assert _most_loads_before_a_product(apart) == 2
    check_native(kernel_of(BLOCK), target)


def _without_registers(line: str) -> str:
    return re.sub(r"%\w+", "%", line).strip()


def _most_loads_before_a_product(lines: list[str]) -> int:
    """Most loads between two multiply-adds."""
    most = loads = 0
    for line in lines:
        loads = 0 if "@llvm.fma" in line else loads + (" load " in line)
        most = max(most, loads)
    return most


FIRST = """
    kernel @k(%n: i64[40] in, %x: f32[64] in, %y: f32[80] out) {
      for i in 40 parallel {
        m: i64 = load %n[i]
        v: i64 = rem(m, i64(12))
        for u in 2 unroll {
          acc s: f32 = add f32(1.0)
          for o in 8 reduce until v {
            for l in 4 vector {
              x: f32 = load %x[8*o + 4*u + l]
              update s with x
            }
          }
          t = read s
          store %y[2*i + u] = t
        }
      }
    }"""


def test_a_sum_ends_where_a_scalar_says(machine: Target):
    """Before the first step (also for less than none), behind the last one, and anywhere between."""
    check_native(kernel_of(FIRST), machine)


def test_copies_of_a_sum_end_together():
    text = FIRST.replace("acc s", "w: i64 = load %n[u]\n          acc s").replace("until v", "until w")
    with pytest.raises(CompileError, match="the end of o varies"):
        emitted(kernel_of(text))
