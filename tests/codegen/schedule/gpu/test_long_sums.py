"""Stretches of long sums: where there are too few results for a GPU, and how many stretches there are."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.cuda.costs import GPU
from graphc.codegen.schedule.gpu.long_sums import stretches_of
from graphc.ir.kernel.parse import parse_kernel
from graphc.ir.kernel.statements import Kernel


def sums(results: int, terms: int, columns: bool) -> Kernel:
    index = f"i + {results}*j" if columns else f"{terms}*i + j"
    return parse_kernel(f"""kernel @k(%x: f32[{results * terms}] in, %y: f32[{results}] out) {{
      for i in {results} parallel {{
        acc a: f32 = add f32(0.0)
        for j in {terms} reduce {{ v1: f32 = load %x[{index}] update a with v1 }}
        v2 = read a
        store %y[i] = v2
      }}
    }}""")


@pytest.mark.parametrize(
    "results,terms,columns,stretches",
    [
        (1, 1 << 24, False, 512),
        (64, 1 << 16, False, 8),
        (768, 8192, True, 128),
        (1 << 17, 8192, True, 0),
        (4096, 4096, False, 0),
        (16, 600, False, 0),
        (8, 48, True, 0),
    ],
)
def test_as_many_stretches_as_keep_a_gpu_busy(results: int, terms: int, columns: bool, stretches: int):
    found = stretches_of(sums(results, terms, columns), GPU)
    assert (found is None) == (stretches == 0)
    if found is not None:
        assert terms * results // found.stretch == stretches


def test_what_is_summed_after_a_store_is_left():
    kernel = parse_kernel("""kernel @k(%x: f32[1000000] in, %y: f32[2] out) {
      store %y[1] = f32(0.0)
      acc a: f32 = add f32(0.0)
      for j in 1000000 reduce { v1: f32 = load %x[j] update a with v1 }
      v2 = read a
      store %y[0] = v2
    }""")
    assert stretches_of(kernel, GPU) is None
