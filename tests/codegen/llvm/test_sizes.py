"""Kernels with sizes known at run time, natively at many sizes: strides, tails of lanes under masks, sums, gathers."""

from __future__ import annotations

import ctypes

import pytest

from graphc.base.sizes.named_dims import Dim, dimensions
from graphc.base.sizes.size import at, smaller
from graphc.codegen.llvm.build import build_object, emit_assembly
from graphc.codegen.llvm.emit import emit_kernel
from graphc.codegen.llvm.module import text_of
from graphc.codegen.llvm.sizes import SizeWriter
from graphc.codegen.machine.target import Target, host_target, target_named
from graphc.ir.kernel.parse import parse_kernel
from graphc.ir.kernel.statements import Kernel
from graphc.runtime.loader import host, load_object
from tests.codegen.kernel_native import check_sizes

N = Dim("n", 0, 300, hint=64)
M = Dim("m", 1, 70, hint=8)
LENGTHS = [*range(20), 31, 32, 33, 47, 48, 63, 64, 65, 255, 300]


def emitted(kernel: Kernel, name: str) -> str:
    """The LLVM text of a kernel, which LLVM has taken."""
    items = {}
    function = emit_kernel(kernel, target_named(name), items)
    text = "\n".join([*map(text_of, items.values()), function.text, "attributes #0 = { nounwind }"])
    emit_assembly(text.replace("define internal", "define"), target_named(name))
    return function.text


@pytest.mark.parametrize(
    "size",
    [
        N,
        3 * N + 5,
        N * M - M,
        (N + 7) // 8,
        (N - 9) // 4,
        (2 * N) // (M + 1),
        N // M * 16,
        smaller(N, M),
        abs(N - 7) // 2,
    ],
)
def test_a_size_is_computed_from_its_dimensions(size):
    declared: list[str] = []
    writer = SizeWriter(lambda name, text: declared.append(text))
    value = writer.value(size)
    body = "\n".join([*writer.lines, f"  ret i64 {value}"])
    text = "\n".join([*declared, f"define i64 @f(i64 %n.n, i64 %n.m) {{\n{body}\n}}\n"])
    library = load_object(build_object(text, host_target()), "f", host())
    f = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(library.address)
    known = dimensions([N, M])
    for n in (0, 1, 5, 8, 9, 64, 299, 300):
        for m in (1, 2, 7, 70):
            assert f(n, m) == at(size, {known["n"]: n, known["m"]: m})


DIMS = "dim m = 1..70 hint 8\ndim n = 0..300 hint 64\n"

MASKED = (
    DIMS
    + """\
kernel @k(%x: f32[m*n] in, %y: f32[m*n] out) {
  for i in m parallel {
    for o in (n // 16) parallel {
      for l in 16 vector {
        a: f32 = load %x[n*i + 16*o + l]
        b: f32 = mul(a, a)
        store %y[n*i + 16*o + l] = b
      }
    }
    for t in ((n + 15) // 16) - (n // 16) parallel {
      for q in n - 16*(n // 16) vector {
        c: f32 = load %x[n*i + 16*(n // 16) + q]
        d: f32 = mul(c, c)
        store %y[n*i + 16*(n // 16) + q] = d
      }
    }
  }
}
"""
)

SOFTMAX = (
    DIMS
    + """\
kernel @k(%x: f32[m*n] in, %y: f32[m*n] out, %e: f32[n] scratch) {
  for i in m parallel {
    acc top: f32 = max f32(-inf)
    for o in (n // 8) reduce {
      for l in 8 vector {
        a: f32 = load %x[n*i + 8*o + l]
        update top with a
      }
    }
    for q in n - 8*(n // 8) vector {
      b: f32 = load %x[n*i + 8*(n // 8) + q]
      update top with b
    }
    t = read top
    acc sum: f32 = add f32(0.25)
    for o2 in (n // 8) reduce {
      for l2 in 8 vector {
        c: f32 = load %x[n*i + 8*o2 + l2]
        d: f32 = sub(c, t)
        store %e[8*o2 + l2] = d
        update sum with d
      }
    }
    for q2 in n - 8*(n // 8) vector {
      g: f32 = load %x[n*i + 8*(n // 8) + q2]
      h: f32 = sub(g, t)
      store %e[8*(n // 8) + q2] = h
      update sum with h
    }
    s = read sum
    for j in n serial {
      u: f32 = load %e[j]
      v: f32 = add(u, s)
      store %y[n*i + j] = v
    }
  }
}
"""
)
"""Two sums over lanes with a tail that may be empty, without a loop around the tail."""

RUNNING = (
    DIMS
    + """\
kernel @k(%x: f32[m*n] in, %y: f32[m*n] out, %z: f32[m] out) {
  for i in m parallel {
    acc sum: f32 = add f32(0.5)
    for o in (n // 4) serial {
      for l in 4 vector {
        a: f32 = load %x[n*i + 4*o + l]
        update sum with a
        r = read sum
        store %y[n*i + 4*o + l] = r
      }
    }
    for q in n - 4*(n // 4) vector {
      b: f32 = load %x[n*i + 4*(n // 4) + q]
      update sum with b
      t = read sum
      store %y[n*i + 4*(n // 4) + q] = t
    }
    w = read sum
    store %z[i] = w
  }
}
"""
)

TURNED = (
    DIMS
    + """\
kernel @k(%x: f32[m*n] in, %y: f32[m*n] out, %f: i64[m*n] out) {
  for i in m parallel {
    for o in (n // 8) parallel {
      for l in 8 vector {
        a: f32 = load %x[m*(8*o + l) + i]
        store %y[n*i + 8*o + l] = a
      }
    }
    for q in n - 8*(n // 8) vector {
      b: f32 = load %x[m*q + m*(8*(n // 8)) + i]
      store %y[n*i + 8*(n // 8) + q] = b
      k: i64 = index m*q + i
      store %f[n*i + 8*(n // 8) + q] = k
    }
  }
}
"""
)

SCATTERED = (
    DIMS
    + """\
kernel @k(%x: f32[m*n] in, %y: f32[m*n] inout, %b: bool[3*n] inout) {
  for i in m serial {
    for o in (n // 8) parallel {
      for l in 8 vector {
        a: f32 = load %x[n*i + 8*o + l]
        store %y[m*(8*o + l) + i] add= a
      }
    }
    for q in n - 8*(n // 8) vector {
      b: f32 = load %x[n*i + 8*(n // 8) + q]
      store %y[m*q + 8*m*(n // 8) + i] add= b
      c: bool = gt(b, f32(0.0))
      store %b[24*(n // 8) + 3*q] = c
    }
  }
}
"""
)

GATHERED = (
    DIMS
    + """\
kernel @k(%i: i64[n] in, %x: f64[m] in, %y: f64[n] out, %z: f64[m*n] out) {
  for o in (n // 4) parallel {
    for l in 4 vector {
      p: i64 = load %i[4*o + l]
      a: i64 = abs(p)
      b: i64 = min(a, i64(0))
      x: f64 = load %x[[b:0..m - 1]]
      store %y[4*o + l] = x
    }
  }
  for q in n - 4*(n // 4) vector {
    r: i64 = load %i[4*(n // 4) + q]
    s: i64 = abs(r)
    t: i64 = min(s, i64(0))
    u: f64 = load %x[[t:0..m - 1]]
    store %y[4*(n // 4) + q] = u
  }
  for j in m parallel {
    for h in n parallel {
      v: f64 = load %x[j]
      store %z[n*j + h] = v
    }
  }
}
"""
)

GUARDED = (
    DIMS
    + """\
kernel @k(%x: f32[m*n] in, %y: f32[2*m*n + 2*m] out) {
  for i in m parallel {
    for o in ((2*n + 2) // 8) parallel {
      for l in 8 vector {
        a: f32 = load %x[n*i + 8*o + l - 1] if 1 <= 8*o + l < n + 1 else f32(3.5)
        store %y[2*n*i + 2*i + 8*o + l] = a
      }
    }
    for j in 2*n + 2 - 8*((2*n + 2) // 8) parallel {
      b: f32 = load %x[n*i + 8*((2*n + 2) // 8) + j - 1] if 1 <= 8*((2*n + 2) // 8) + j < n + 1 else f32(3.5)
      store %y[2*n*i + 2*i + 8*((2*n + 2) // 8) + j] = b
    }
  }
}
"""
)

DIVIDED = (
    DIMS
    + """\
kernel @k(%x: f32[m*n] in, %y: f32[m*n] out, %z: i32[m*n] out) {
  for o in (m*n // 8) parallel {
    for l in 8 vector {
      a: f32 = load %x[m*((8*o + l) % n) + ((8*o + l) // n)]
      store %y[8*o + l] = a
      k: i32 = index ((8*o + l) // m)
      store %z[8*o + l] = k
    }
  }
  for j in m*n - 8*(m*n // 8) parallel {
    b: f32 = load %x[m*((8*(m*n // 8) + j) % n) + ((8*(m*n // 8) + j) // n)]
    store %y[8*(m*n // 8) + j] = b
    r: i32 = index ((8*(m*n // 8) + j - 3) // m)
    store %z[8*(m*n // 8) + j] = r
  }
}
"""
)

PRODUCT = (
    DIMS
    + """\
kernel @k(%a: f32[m*n] in, %b: f32[24*n] in, %c: f32[24*m] out) {
  for g in (m // 4) parallel {
    for u in 4 unroll {
      for s in 3 unroll {
        for l in 8 vector {
          acc t: f32 = add f32(0.0)
          for k in n reduce {
            x: f32 = load %a[n*(4*g + u) + k]
            y: f32 = load %b[24*k + 8*s + l]
            p: f32 = mul(x, y)
            update t with p
          }
          r = read t
          store %c[24*(4*g + u) + 8*s + l] = r
        }
      }
    }
  }
  for h in m - 4*(m // 4) parallel {
    for s2 in 3 unroll {
      for l2 in 8 vector {
        acc t2: f32 = add f32(0.0)
        for k2 in n reduce {
          x2: f32 = load %a[n*h + 4*n*(m // 4) + k2]
          y2: f32 = load %b[24*k2 + 8*s2 + l2]
          p2: f32 = mul(x2, y2)
          update t2 with p2
        }
        r2 = read t2
        store %c[24*h + 96*(m // 4) + 8*s2 + l2] = r2
      }
    }
  }
}
"""
)

COPIES = (
    DIMS
    + """\
kernel @k(%x: f32[4*n] in, %w: f32[4] in, %y: f32[4*n] out, %s: f32[4] out) {
  for u in 4 unroll {
    acc t: f32 = add f32(1.0)
    w: f32 = load %w[u]
    for o in (n // 8) reduce {
      for l in 8 vector {
        a: f32 = load %x[4*(8*o + l) + u]
        b: f32 = mul(a, w)
        store %y[n*u + 8*o + l] = b
        update t with b
      }
    }
    for q in n - 8*(n // 8) vector {
      c: f32 = load %x[4*q + 32*(n // 8) + u]
      d: f32 = mul(c, w)
      store %y[n*u + 8*(n // 8) + q] = d
      update t with d
    }
    r = read t
    store %s[u] = r
  }
}
"""
)

NOTHING_INSIDE = (
    DIMS
    + """\
kernel @k(%x: f32[n] in, %y: f32[n] out) {
  for i in n parallel {
    a: f32 = load %x[i] if 0 <= i < n - 9 else f32(2.0)
    store %y[i] = a
  }
  for o in (n // 8) parallel {
    for l in 8 vector {
      b: f32 = load %x[8*o + l] if 0 <= 8*o + l < n - 200 else f32(3.0)
      store %y[8*o + l] = b if 4 <= 8*o + l < 2
      store %y[8*o + l] = b if 0 <= 8*o + l < n - 100
    }
  }
}
"""
)
"""Ranges that are empty, also where the end lies below the start."""

ONE_LANE = (
    "dim m = 1..70 hint 8\ndim n = 0..300 hint 64\n"
    + """\
kernel @k(%x: f32[n] in, %y: f32[n] out) {
  for o in (n // 2) parallel {
    for l in 2 vector {
      a: f32 = load %x[2*o + l] if 0 <= 2*o + l - 3 < 40 else f32(2.0)
      store %y[2*o + l] = a
    }
  }
  for q in n - 2*(n // 2) vector {
    c: f32 = load %x[q + 2*(n // 2)] if 0 <= q + 2*(n // 2) - 3 < 40 else f32(2.0)
    store %y[q + 2*(n // 2)] = c
  }
}
"""
)
"""A tail of at most one lane."""

KERNELS = {
    "nothing inside": NOTHING_INSIDE,
    "one lane": ONE_LANE,
    "masked": MASKED,
    "softmax": SOFTMAX,
    "running": RUNNING,
    "turned": TURNED,
    "scattered": SCATTERED,
    "gathered": GATHERED,
    "guarded": GUARDED,
    "divided": DIVIDED,
    "product": PRODUCT,
    "copies": COPIES,
}


@pytest.mark.sampled(50)
@pytest.mark.parametrize("name", KERNELS)
def test_one_kernel_at_many_sizes(name: str, machine: Target):
    kernel = parse_kernel(KERNELS[name])
    sizes = [{"n": n, "m": m} for n in LENGTHS for m in (1, 2, 7)]
    check_sizes(kernel, machine, [*sizes, {"n": 300, "m": 70}, {"n": 1, "m": 70}])


@pytest.mark.parametrize("target", ["avx512", "avx2", "sse2", "neon"])
@pytest.mark.parametrize("name", KERNELS)
def test_one_kernel_as_text_for_every_target(name: str, target: str):
    assert "i64 %n.n" in emitted(parse_kernel(KERNELS[name]), target)
