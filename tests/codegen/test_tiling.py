"""Tiling: what follows the sums stays in registers when it is short and goes through a scratch tile when it is long."""

from __future__ import annotations

import pytest

from graphc.codegen.target import target_named
from graphc.codegen.tiling import SCRATCH
from graphc.ir.kernel import Kernel
from tests.codegen.kernel_native import check_scheduled, kernel_of

WIDE = target_named("avx512")


def followed(length: int) -> Kernel:
    """A product of 30 x 64 x 20 with ``length`` operations after the sum."""
    steps = "\n".join(f"                v{i + 1}: f32 = add(v{i}, f32(1.0))" for i in range(length))
    return kernel_of(f"""
        kernel @k(%a: f32[600] in, %b: f32[1280] in, %c: f32[1920] out) {{
          for i in 30 parallel {{
            for j in 64 parallel {{
              acc s: f32 = add f32(0.0)
              for l in 20 reduce {{
                x: f32 = load %a[20*i + l]
                y: f32 = load %b[64*l + j]
                p: f32 = mul(x, y)
                update s with p
              }}
              v0 = read s
{steps}
              store %c[64*i + j] = v{length}
            }}
          }}
        }}""")


@pytest.mark.parametrize(("length", "through_scratch"), [(1, False), (40, True)])
def test_long_epilogues_go_through_a_scratch_tile(length: int, through_scratch: bool):
    kernel = check_scheduled(followed(length), WIDE).kernel("k")
    assert any(b.name == SCRATCH for b in kernel.buffers) is through_scratch
