"""Lanes over loops whose length is known at run time: full vectors, copies and tails at every length, 0 among them."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.lanes.choose import split_lanes
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Kernel, Loop, walk
from tests.codegen.kernel_native import kernel_of
from tests.codegen.sized import around, check_schedule

HEAD = "dim n = 0..300 hint 64\n"
TARGETS = ("host", "avx2", "sse2", "neon")


def sized(text: str) -> Kernel:
    return kernel_of(HEAD + text.replace("\n        ", "\n").lstrip("\n"))


def lengths(target: str) -> list[dict[str, int]]:
    return [{"n": n} for n in (0, *around(target_named(target), 130, 300))]


def map_kernel(dtype: str) -> Kernel:
    return sized(f"""
        kernel @k(%x: {dtype}[n] in, %y: {dtype}[n] out) {{
          for i in n parallel {{
            v: {dtype} = load %x[i]
            w: {dtype} = {"xor(v, v)" if dtype == "bool" else "add(v, v)"}
            store %y[i] = w
          }}
        }}""")


def reduction(combine: str, init: str, dtype: str = "f32") -> Kernel:
    return sized(f"""
        kernel @k(%x: {dtype}[3*n] in, %y: {dtype}[3] out) {{
          for j in 3 parallel {{
            acc a: {dtype} = {combine} {dtype}({init})
            for i in n reduce {{
              v: {dtype} = load %x[n*j + i]
              update a with v
            }}
            r = read a
            store %y[j] = r
          }}
        }}""")


def pieces(kernel: Kernel, target: str) -> list[tuple[str, str]]:
    """Extents of the vector loops, with those of the loops around them."""
    machine = target_named(target)
    (loop,) = kernel.body
    assert isinstance(loop, Loop)
    body = split_lanes(loop, machine, Names())
    found = [(s, around) for s, around in walk(body) if isinstance(s, Loop) and s.kind == "vector"]
    return [(str(s.axis.extent), " ".join(str(x.axis.extent) for x in around)) for s, around in found]


def test_the_tail_is_one_masked_vector_or_powers_of_two():
    q = "(n // {})".format
    assert pieces(map_kernel("f32"), "avx512") == [
        ("16", f"{q(64)} 4"),
        ("16", f"{q(16)} - 4*{q(64)}"),
        (f"-16*{q(16)} + n", f"((n + 15) // 16) - {q(16)}"),
    ]
    assert pieces(map_kernel("f32"), "neon") == [
        ("4", f"{q(16)} 4"),
        ("4", f"-4*{q(16)} + {q(4)}"),
        ("2", f"{q(2)} - 2*{q(4)}"),
        ("1", f"-2*{q(2)} + n"),
    ]


def test_a_length_that_is_a_number_of_vectors_has_no_tail():
    kernel = kernel_of("""
        dim n = 1..300 hint 64
        kernel @k(%x: f32[32*n] in, %y: f32[32*n] out) {
          for i in 32*n parallel {
            v: f32 = load %x[i]
            store %y[i] = v
          }
        }""")
    assert [p[0] for p in pieces(kernel, "avx512")] == ["16", "16"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i64", "i8", "u8", "bool"])
def test_every_element_type(dtype: str, target: str):
    check_schedule(map_kernel(dtype), target_named(target), lengths(target))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("combine", "init", "dtype"),
    [
        ("add", "2.5", "f32"),
        ("max", "-inf", "f32"),
        ("max", "1.0", "f32"),
        ("min", "inf", "f64"),
        ("mul", "1.0", "f32"),
        ("add", "1", "i64"),
        ("min", "100", "i8"),
        ("max", "1", "u8"),
        ("or", "false", "bool"),
        ("and", "true", "bool"),
    ],
)
def test_every_reduction(combine: str, init: str, dtype: str, target: str):
    check_schedule(reduction(combine, init, dtype), target_named(target), lengths(target))


DIVIDED = """
        kernel @k(%x: i32[n] in, %z: i32[n] in, %y: i32[n] out) {
          for i in n parallel {
            v: i32 = load %x[i]
            w: i32 = load %z[i]
            o: i32 = or(w, i32(1))
            d: i32 = div(v, o)
            store %y[i] = d
          }
        }"""

GATHERED = """
        kernel @k(%x: f32[7*n + 1] in, %p: i64[n] in, %y: f32[n] out) {
          for i in n parallel {
            a: i64 = load %p[i]
            b: i64 = max(a, i64(0))
            m: i64 = index 7*n
            c: i64 = min(b, m)
            v: f32 = load %x[[c:0..7*n]]
            u: f32 = load %x[7*i]
            w: f32 = add(u, v)
            store %y[i] = w
          }
        }"""

STRIDED = """
        kernel @k(%x: f32[3*n] in, %y: f32[3*n] out) {
          for i in n parallel {
            for j in 3 parallel {
              v: f32 = load %x[3*i + j]
              w: f32 = load %x[3*i]
              u: f32 = mul(v, w)
              store %y[3*i + j] = u
            }
          }
        }"""

RUNNING = """
        kernel @k(%x: f32[n] in, %y: f32[n] out, %z: f32[1] out) {
          acc s: f32 = add f32(0.25)
          for j in n serial {
            v: f32 = load %x[j]
            update s with v
            r = read s
            store %y[j] = r
          }
          t = read s
          store %z[0] = t
        }"""

BESIDE = """
        kernel @k(%x: f32[4*n] in, %w: f32[n] in, %y: f32[4*n] out) {
          for b in n parallel {
            for j in 4 parallel {
              a: f32 = load %w[b]
              e: f32 = exp(a)
              f: f32 = tanh(e)
              g: f32 = sin(f)
              v: f32 = load %x[n*j + b]
              u: f32 = mul(v, g)
              store %y[n*j + b] = u
            }
          }
        }"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("text", [DIVIDED, GATHERED, STRIDED, RUNNING, BESIDE])
def test_every_access(text: str, target: str):
    check_schedule(sized(text), target_named(target), lengths(target))
