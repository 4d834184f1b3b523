"""Matrix products with named dimensions, for tests of contractions scheduled once for all sizes."""

from __future__ import annotations

from graphc.ir.kernel.statements import Kernel
from tests.codegen.kernel_native import kernel_of

DIMS = """
        dim batch = 1..64 hint 8
        dim rows = 1..600 hint 100
        dim time = 1..300 hint 100"""
PLAIN = ("({k})*i + l", "({n})*l + j")
TRANSPOSED_B = ("({k})*i + l", "({k})*j + l")
TRANSPOSED_A = ("({m})*l + i", "({n})*l + j")
STORE = "store %c[({n})*i + j] = r"
STORE_TRANSPOSED = "store %c[({m})*j + i] = r"
GELU = """bias: f32 = load %bias[j]
              h: f32 = add(r, bias)
              e: f32 = mul(h, f32(0.7071067811865476))
              f: f32 = erf(e)
              g: f32 = add(f, f32(1.0))
              o: f32 = mul(h, g)
              q: f32 = mul(o, f32(0.5))
              store %c[({n})*i + j] = q"""
RESIDUAL = """bias: f32 = load %bias[j]
              h: f32 = add(r, bias)
              w: f32 = load %residual[({n})*i + j]
              q: f32 = add(h, w)
              store %c[({n})*i + j] = q"""


def sized_product(
    m: str | int, n: str | int, k: str | int, places: tuple[str, str] = PLAIN, after: str = STORE, stored: str = ""
) -> Kernel:
    """A product of ``m`` rows, ``n`` columns and depth ``k``, which are sizes as text or numbers; the second operand
    may be stored narrow."""
    a, b = places
    read = f"w: {stored} = load %b[{b}]\n                y: f32 = cast(w)" if stored else f"y: f32 = load %b[{b}]"
    bias = ", %bias: f32[{n}] in" if "%bias" in after else ""
    residual = ", %residual: f32[({m})*({n})] in" if "%residual" in after else ""
    text = f"""{DIMS}
        kernel @k(%a: f32[({{m}})*({{k}})] in, %b: {stored or "f32"}[({{k}})*({{n}})] in{bias}{residual},
                  %c: f32[({{m}})*({{n}})] out) {{{{
          for i in {{m}} parallel {{{{
            for j in {{n}} parallel {{{{
              acc s: f32 = add f32(0.0)
              for l in {{k}} reduce {{{{
                x: f32 = load %a[{a}]
                {read}
                p: f32 = mul(x, y)
                update s with p
              }}}}
              r = read s
              {after}
            }}}}
          }}}}
        }}}}"""
    return kernel_of(text.format(m=m, n=n, k=k).replace("in,\n                  %c", "in, %c"))


SCORES = f"""{DIMS}
        kernel @k(%q: f32[batch*time*96] in, %k: f32[batch*time*96] in, %c: f32[batch*6*time*time] out) {{
          for b in batch parallel {{
            for h in 6 parallel {{
              for i in time parallel {{
                for j in time parallel {{
                  acc s: f32 = add f32(0.0)
                  for l in 16 reduce {{
                    x: f32 = load %q[96*time*b + 96*i + 16*h + l]
                    y: f32 = load %k[96*time*b + 96*j + 16*h + l]
                    p: f32 = mul(x, y)
                    update s with p
                  }}
                  r = read s
                  t: f32 = mul(r, f32(0.25))
                  store %c[6*time*time*b + time*time*h + time*i + j] = t
                }}
              }}
            }}
          }}
        }}"""

MIXED = f"""{DIMS}
        kernel @k(%a: f32[batch*6*time*time] in, %v: f32[batch*time*96] in, %c: f32[batch*time*96] out) {{
          for b in batch parallel {{
            for h in 6 parallel {{
              for i in time parallel {{
                for j in 16 parallel {{
                  acc s: f32 = add f32(0.0)
                  for l in time reduce {{
                    x: f32 = load %a[6*time*time*b + time*time*h + time*i + l]
                    y: f32 = load %v[96*time*b + 96*l + 16*h + j]
                    p: f32 = mul(x, y)
                    update s with p
                  }}
                  r = read s
                  store %c[96*time*b + 96*i + 16*h + j] = r
                }}
              }}
            }}
          }}
        }}"""

_PADDED = "0 <= i + ky - 1 < SIDE and 0 <= j + kx - 1 < SIDE else f32(0.0)"
_CHANNELS_FIRST = f"""{DIMS}
        kernel @k(%x: f32[batch*5*SIDE*SIDE] in, %w: f32[540] in, %c: f32[batch*12*SIDE*SIDE] out) {{
          for b in batch parallel {{
            for o in 12 parallel {{
              for i in SIDE parallel {{
                for j in SIDE parallel {{
                  acc s: f32 = add f32(0.0)
                  for ci in 5 reduce {{
                    for ky in 3 reduce {{
                      for kx in 3 reduce {{
                        x: f32 = load %x[SIDE*SIDE*(5*b + ci) + SIDE*(i + ky - 1) + j + kx - 1] if {_PADDED}
                        y: f32 = load %w[45*o + 9*ci + 3*ky + kx]
                        p: f32 = mul(x, y)
                        update s with p
                      }}
                    }}
                  }}
                  r = read s
                  store %c[SIDE*SIDE*(12*b + o) + SIDE*i + j] = r
                }}
              }}
            }}
          }}
        }}"""
_CHANNELS_LAST = f"""{DIMS}
        kernel @k(%x: f32[batch*5*(SIDE + 2)*(SIDE + 2)] in, %w: f32[540] in, %c: f32[batch*12*SIDE*SIDE] out) {{
          for b in batch parallel {{
            for i in SIDE parallel {{
              for j in SIDE parallel {{
                for o in 12 parallel {{
                  acc s: f32 = add f32(0.0)
                  for ky in 3 reduce {{
                    for kx in 3 reduce {{
                      for ci in 5 reduce {{
                        x: f32 = load %x[5*(SIDE + 2)*((SIDE + 2)*b + i + ky) + 5*j + 5*kx + ci]
                        y: f32 = load %w[45*o + 9*ci + 3*ky + kx]
                        p: f32 = mul(x, y)
                        update s with p
                      }}
                    }}
                  }}
                  r = read s
                  store %c[12*SIDE*(SIDE*b + i) + 12*j + o] = r
                }}
              }}
            }}
          }}
        }}"""


def convolution(side: str, channels_last: bool) -> Kernel:
    """A convolution of 3x3 with zeros around an image of ``side``, a number or a size, or around which they lie."""
    text = _CHANNELS_LAST if channels_last else _CHANNELS_FIRST
    return kernel_of(text.replace("SIDE", side))
