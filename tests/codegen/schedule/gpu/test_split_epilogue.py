"""A sum and what is done with it as two kernels."""

from __future__ import annotations

import numpy as np

from graphc.codegen.schedule.gpu.split_epilogue import split_epilogue
from graphc.ir.kernel.interpret import run_kernel
from graphc.ir.kernel.verify import verify_kernel
from tests.codegen.kernel_native import kernel_of, random_memory


def test_both_parts_do_what_the_whole_does() -> None:
    whole = kernel_of("""
        kernel @k(%a: f32[30] in, %b: f32[30] in, %d: f32[5] in, %c: f32[30] out) {
          for i in 5 parallel {
            for j in 6 parallel {
              v: f32 = load %d[i]
              acc s: f32 = add f32(0.0)
              for l in 6 reduce {
                x: f32 = load %a[6*i + l]
                y: f32 = load %b[5*j + i]
                p: f32 = mul(x, y)
                update s with p
              }
              r = read s
              e: f32 = exp(r)
              f: f32 = mul(e, v)
              store %c[i + 5*j] = f
            }
          }
        }""")
    parts = split_epilogue(whole, "sums")
    assert parts is not None
    for part in parts:
        verify_kernel(part)
    sums, rest = parts
    assert [b.name for b in sums.buffers] == ["a", "b", "sums"] and rest.name == whole.name
    assert [b.name for b in rest.buffers] == ["d", "sums", "c"]
    memory = random_memory(whole)
    expected = {name: array.copy() for name, array in memory.items()}
    run_kernel(whole, expected)
    memory["sums"] = np.zeros(30, np.float32)
    run_kernel(sums, {b.name: memory[b.name] for b in sums.buffers})
    run_kernel(rest, {b.name: memory[b.name] for b in rest.buffers})
    np.testing.assert_array_equal(memory["c"], expected["c"])


def test_what_has_no_sum_is_left() -> None:
    kernel = kernel_of("""
        kernel @k(%a: f32[5] in, %c: f32[5] out) {
          for i in 5 parallel {
            x: f32 = load %a[i]
            store %c[i] = x
          }
        }""")
    assert split_epilogue(kernel, "sums") is None
