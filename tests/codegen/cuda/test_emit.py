"""Kernels with threads as CUDA C: what the interpreter computes, executed in several orders and watched for races."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import BY_NAME
from graphc.base.errors import CompileError
from graphc.base.sizes.size import at
from graphc.codegen.cuda.emit import emit_kernel
from graphc.codegen.cuda.nvrtc import compile_cubin
from graphc.codegen.cuda.prelude import PRELUDE
from graphc.ir.kernel.dims import bind_kernel, dims_of_kernel
from graphc.ir.kernel.interpret import run_kernel
from graphc.ir.kernel.parse import parse_kernel
from graphc.ir.kernel.statements import Kernel, identity
from graphc.ir.kernel.verify import verify_kernel
from graphc.runtime.devices.emulated import ORDERS, EmulatedDevice
from tests.codegen.cuda.running import launch_kernels

DEVICE = EmulatedDevice(orders=ORDERS, races=True)


def numbers(kernel: Kernel) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        b.name: (rng.standard_normal(b.size) * 3 if b.dtype.kind == "f" else rng.integers(0, 2, b.size)).astype(
            b.dtype.numpy
        )
        for b in kernel.arguments
    }


def check(text: str, tolerance: float = 1e-6, **sizes: int) -> None:
    """The kernel does on the emulated device what the interpreter does."""
    kernel = parse_kernel(text)
    verify_kernel(kernel)
    exact = bind_kernel(kernel, sizes) if sizes else kernel
    arrays = numbers(exact)
    expected = {name: a.copy() for name, a in arrays.items()}
    run_kernel(exact, expected)
    (found,) = launch_kernels(DEVICE, [kernel], [arrays], *(sizes[d] for d in dims_of_kernel(kernel)))
    for name, wanted in expected.items():
        np.testing.assert_allclose(found[name], wanted, rtol=tolerance, atol=tolerance, err_msg=name)
    compiled = compile_cubin(PRELUDE + emit_kernel(kernel, "k")[0])
    assert compiled.kernels["k"].spilled == 0


def test_a_thread_for_each_iteration_of_nested_loops():
    check("""kernel @k(%x: f32[60] in, %y: f32[60] out) threads 64 {
      for i in 4 grid { for j in 15 grid {
        v1: f32 = load %x[15*i + j]
        v2: f32 = load %x[15*i + j - 1] if 1 <= j < 15 else f32(7.0)
        v3: f32 = add(v1, v2)
        store %y[15*i + j] = v3 if 0 <= i < 3
        store %y[15*i + j] = v1 if 3 <= i < 4
      } }
    }""")


@pytest.mark.sampled(50)
@pytest.mark.parametrize("kind", ["f32", "f64", "i32", "i64", "i8", "u8", "bool"])
@pytest.mark.parametrize("combine", ["add", "mul", "max", "min", "and", "or"])
@pytest.mark.parametrize("over,spread,shared", [("block", "block", "thread"), ("warp", "warp", "lane")])
def test_sums_over_blocks_and_warps(kind: str, combine: str, over: str, spread: str, shared: str):
    dtype = BY_NAME[kind]
    fits = {"f": "add mul max min", "b": "and or max min"}.get(dtype.kind, "add mul max min and or")
    if combine not in fits.split():
        pytest.skip("no such sum")
    start = identity(combine, dtype)
    value = {"b": str(start.value).lower(), "f": repr(start.value)}.get(dtype.kind, str(start.value))
    check(
        f"""kernel @k(%x: {kind}[500] in, %y: {kind}[5] out) threads 128 {{
      for i in 5 {spread} {{
        acc a: {kind} = {combine} {kind}({value})
        for j in 100 {shared} {{
          v1: {kind} = load %x[100*i + j]
          update a with v1
        }}
        v2 = read a over {over}
        store %y[i] = v2
      }}
    }}""",
        1e-4 if combine == "mul" else 1e-6,
    )


def test_an_accumulator_starts_from_its_value_once():
    check(
        """kernel @k(%x: f32[300] in, %y: f32[1] out) threads 256 {
      acc a: f32 = add f32(100.0)
      for j in 300 thread {
        v1: f32 = load %x[j]
        update a with v1
      }
      v2 = read a over block
      store %y[0] = v2
    }""",
        1e-5,
    )


@pytest.mark.parametrize("spread,shared,over", [("block", "thread", "block"), ("warp", "lane", "warp")])
def test_shared_rows_and_barriers(spread: str, shared: str, over: str):
    check(f"""kernel @k(%x: f32[400] in, %y: f32[400] out, %s: f32[100] shared) threads 64 {{
      for i in 4 {spread} {{
        for j in 100 {shared} {{
          v1: f32 = load %x[100*i + j]
          store %s[j] = v1
        }}
        barrier {over}
        for k in 100 {shared} {{
          v2: f32 = load %s[99 - k]
          store %y[100*i + k] = v2
        }}
      }}
    }}""")


@pytest.mark.parametrize("spread,shared", [("block", "thread"), ("warp", "lane")])
def test_private_rows(spread: str, shared: str):
    check(f"""kernel @k(%x: f32[400] in, %y: f32[400] out, %p: f32[100] private) threads 64 {{
      for i in 4 {spread} {{
        for j in 100 {shared} {{
          v1: f32 = load %x[100*i + j]
          store %p[j] = v1
        }}
        for k in 100 {shared} {{
          v2: f32 = load %p[k]
          v3: f32 = mul(v2, v2)
          store %y[100*i + k] = v3
        }}
      }}
    }}""")


def test_each_thread_has_several_private_elements():
    check("""kernel @k(%x: f32[256] in, %y: f32[64] out, %p: f32[256] private) threads 64 {
      for t in 64 thread {
        for e in 4 unroll {
          v1: f32 = load %x[4*t + e]
          store %p[4*t + e] = v1
        }
      }
      for u in 64 thread {
        acc a: f32 = add f32(0.0)
        for e in 4 unroll {
          v2: f32 = load %p[4*u + e]
          update a with v2
        }
        v3 = read a
        store %y[u] = v3
      }
    }""")


def test_loops_inside_of_a_thread():
    check("""kernel @k(%x: f32[120] in, %n: i64[10] in, %y: f32[10] out) threads 32 {
      for i in 10 grid {
        acc a: f32 = max f32(-inf)
        v0: i64 = load %n[i]
        v1: i64 = mul(v0, i64(9))
        v2: i64 = add(v1, i64(3))
        for j in 12 reduce until v2 {
          v3: f32 = load %x[12*i + j]
          update a with v3
        }
        for j in 12 serial {
          v4: f32 = load %x[j + 12*[v0:0..1]]
          update a with v4
        }
        v5 = read a
        store %y[i] = v5
      }
    }""")


def test_named_dimensions():
    text = """dim n = 1..100 hint 20
    kernel @k(%x: f32[7*n] in, %y: f32[n] out) threads 64 {
      for i in n block {
        acc a: f32 = add f32(0.0)
        for j in 7 thread {
          v1: f32 = load %x[7*i + j]
          update a with v1
        }
        v2 = read a over block
        store %y[n - i - 1] = v2
      }
    }"""
    for n in (1, 33, 100):
        check(text, n=n)
    (launch,) = [emit_kernel(parse_kernel(text), "k")[1]]
    (n,) = dims_of_kernel(parse_kernel(text)).values()
    assert at(launch.grid, {n: 33}) == 33


def test_how_kernels_are_started():
    grid = "kernel @k(%y: f32[1000] out) threads 256 { for i in 1000 grid { store %y[i] = f32(0.0) } }"
    warp = "kernel @k(%y: f32[10] out) threads 128 { for i in 10 warp { store %y[i] = f32(0.0) } }"
    launches = [emit_kernel(parse_kernel(text), "k")[1] for text in (grid, warp)]
    assert [(x.grid, x.threads, x.dynamic) for x in launches] == [(4, 256, 0), (3, 128, 0)]
    check(grid)
    check(warp)


def test_large_buffers_are_indexed_by_64_bits():
    text = "kernel @k(%y: f32[3000000000] out) threads 256 { for i in 3000000000 grid { store %y[i] = f32(0.0) } }"
    source = emit_kernel(parse_kernel(text), "k")[0]
    assert "const long long gc_at" in source and "(long long)blockIdx.x * 256" in source


def test_what_belongs_to_no_single_thread_is_refused():
    text = """kernel @k(%x: f32[100] in, %y: f32[100] out, %p: f32[100] private) threads 32 {
      for j in 100 thread {
        v1: f32 = load %x[j]
        store %p[99 - j] = v1
      }
      for k in 100 thread {
        v2: f32 = load %p[k]
        store %y[k] = v2
      }
    }"""
    with pytest.raises(CompileError, match="does not belong to a single thread"):
        emit_kernel(parse_kernel(text), "k")
