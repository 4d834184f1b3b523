"""Matrix products for tests of the tiling of contractions."""

from __future__ import annotations

from graphc.ir.kernel.statements import Kernel
from tests.codegen.kernel_native import kernel_of


def product(m: int, n: int, k: int, a: str, b: str, dtype: str = "f32", stored: str = "") -> Kernel:
    """A matrix product with operand indices written in i, j and l; the second operand may be stored narrow."""
    read = f"y: {dtype} = load %b[{b}]"
    if stored:
        read = f"n: {stored} = load %b[{b}]\n                y: {dtype} = cast(n)"
    return kernel_of(f"""
        kernel @k(%a: {dtype}[{m * k}] in, %b: {stored or dtype}[{k * n}] in, %c: {dtype}[{m * n}] out) {{
          for i in {m} parallel {{
            for j in {n} parallel {{
              acc s: {dtype} = add {dtype}(0.0)
              for l in {k} reduce {{
                x: {dtype} = load %a[{a}]
                {read}
                p: {dtype} = mul(x, y)
                update s with p
              }}
              r = read s
              store %c[{n}*i + j] = r
            }}
          }}
        }}""")


def plain(m: int, n: int, k: int, dtype: str = "f32", stored: str = "") -> Kernel:
    return product(m, n, k, f"{k}*i + l", f"{n}*l + j", dtype, stored)


def transposed_b(m: int, n: int, k: int, dtype: str = "f32", stored: str = "") -> Kernel:
    return product(m, n, k, f"{k}*i + l", f"{k}*j + l", dtype, stored)


def transposed_a(m: int, n: int, k: int, dtype: str = "f32", stored: str = "") -> Kernel:
    return product(m, n, k, f"{m}*l + i", f"{n}*l + j", dtype, stored)


def depthwise(channels: int, pixels: int, window: int) -> Kernel:
    """A sum over windows of each channel, channels last: i and j are pixels, whose windows share elements."""
    line = (pixels + window - 1) * channels
    sizes = (pixels + window - 1) * line, window * window * channels, pixels * pixels * channels
    return kernel_of(f"""
        kernel @k(%a: f32[{sizes[0]}] in, %b: f32[{sizes[1]}] in, %c: f32[{sizes[2]}] out) {{
          for i in {pixels} parallel {{
            for j in {pixels} parallel {{
              for c in {channels} parallel {{
                acc s: f32 = add f32(0.0)
                for v in {window} reduce {{
                  for h in {window} reduce {{
                    x: f32 = load %a[{line}*i + {channels}*j + c + {line}*v + {channels}*h]
                    y: f32 = load %b[{window * channels}*v + {channels}*h + c]
                    p: f32 = mul(x, y)
                    update s with p
                  }}
                }}
                r = read s
                store %c[{pixels * channels}*i + {channels}*j + c] = r
              }}
            }}
          }}
        }}""")
