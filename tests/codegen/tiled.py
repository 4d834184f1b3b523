"""Machine with products of bf16 tiles, and kernels with products of pairs, for tests."""

from __future__ import annotations

from dataclasses import replace

from graphc.codegen.machine.target import Target, target_named
from graphc.codegen.machine.x86_64.facts import describe
from graphc.ir.kernel.statements import Kernel
from tests.codegen.kernel_native import kernel_of
from tests.native import priced

BASE = target_named("avx512")
PAIRS = f"{BASE.features},+avx512bf16"
TILES = replace(describe(BASE.triple, "sapphirerapids", f"{PAIRS},+amx-tile,+amx-bf16"), costs=BASE.costs)
"""A processor with AMX."""
FREE = {
    **{"tile_row_cycles": 0.001, "tile_row_read": 0.001, "tile_block_cycles": 0.0, "pack_start": 0.0},
    **{"pack_turned_start": 0.0, "pack_element": 0.0, "pack_turned_element": 0.0, "pack_gathered_element": 0.0},
}
"""Costs by which all products are summed in tiles that can be."""
EAGER = priced(TILES, contraction=FREE)
"""A processor where they are."""
NO_TILES: Target = describe(BASE.triple, "cooperlake", PAIRS)
"""One with vectors of bf16 alone."""


def pairs(m: int, n: int, k: int, a: str, b: str, after: str = "", stored: str = "r") -> Kernel:
    """A product of ``k`` pairs, with operand indices written in i, j and l, and statements after the sum ``r``."""
    return kernel_of(f"""
        kernel @k(%a: bf16x2[{m * k}] in, %b: bf16x2[{k * n}] in, %c: f32[{m * n}] out) {{
          for i in {m} parallel {{
            for j in {n} parallel {{
              acc s: f32 = add f32(0.0)
              for l in {k} reduce {{
                x: bf16x2 = load %a[{a}]
                y: bf16x2 = load %b[{b}]
                p: f32 = dot2(x, y)
                update s with p
              }}
              r = read s
              {after}
              store %c[{n}*i + j] = {stored}
            }}
          }}
        }}""")


def rows_and_columns(m: int, n: int, k: int, after: str = "", stored: str = "r") -> Kernel:
    """Pairs lie side by side in rows of ``a``, columns in rows of ``b``."""
    return pairs(m, n, k, f"{k}*i + l", f"{n}*l + j", after, stored)
