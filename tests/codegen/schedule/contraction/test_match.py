"""Contractions: which nests are recognised, which register blocks are chosen, and equal results for odd sizes."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import float32
from graphc.codegen.llvm.build import emit_assembly
from graphc.codegen.machine.target import Target, target_named
from graphc.codegen.schedule.contraction.match import find_contraction
from graphc.codegen.schedule.forms import canonical
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.parse import parse_kernel
from graphc.ir.kernel.statements import Kernel, Loop, walk
from tests.codegen.kernel_native import check_scheduled, kernel_of
from tests.codegen.products import plain, transposed_a, transposed_b
from tests.native import TARGETS, Tolerance, emitted
from tests.native import check_native as check_graph
from tests.passes.check_pass import random_arguments
from tests.passes.graph_text import graph_of

WIDE = target_named("avx512")


FORMS = {"plain": plain, "transposed_a": transposed_a, "transposed_b": transposed_b}
SIZES = [(1, 1, 1), (1, 17, 5), (7, 1, 9), (13, 33, 3), (5, 16, 20), (14, 32, 8), (15, 37, 17), (2, 3, 70)]


@pytest.mark.parametrize("form", FORMS)
def test_products_of_any_size_natively(form: str, machine: Target):
    for m, n, k in SIZES:
        kernel = FORMS[form](m, n, k, "f64" if k == 20 else "f32")
        check_scheduled(kernel, machine)


@pytest.mark.sampled(50)
@pytest.mark.parametrize("target", [*TARGETS, "neon"])
@pytest.mark.parametrize("stored", ["bf16", "f16", "i8"])
@pytest.mark.parametrize("form", FORMS)
def test_products_with_a_narrow_operand(form: str, stored: str, target: str):
    """It is read, packed too, as it is stored, and the tile is that of the type that is computed with."""
    machine = target_named(target)
    for m, n, k in [(1, 64, 40), (1, 17, 5), (7, 33, 9), (15, 80, 33)]:
        kernel = FORMS[form](m, n, k, stored=stored)
        found = find_contraction(kernel)
        assert found is not None and found.dtype is float32 and found.b.dtype.name == stored
        program = check_scheduled(kernel, machine)
        packed = [s for s in program.storages if s.name.startswith("b.packed")]
        assert all(s.dtype.name == stored for s in packed)
        if target == "neon":
            assert ".globl" in emit_assembly(emitted(program, machine), machine)


def test_what_is_a_contraction():
    found = find_contraction(plain(4, 5, 6))
    assert found is not None
    assert [x.extent for x in found.outer] == [4, 5] and [x.extent for x in found.reduced] == [6]
    assert (found.a.buffer, found.b.buffer) == ("a", "b") and len(found.outer_accesses) == 1


def kernel_that_sums(inner: str) -> Kernel:
    """A kernel that sums ``p``, which ``inner`` makes of ``x`` and ``y``, over a third loop."""
    return kernel_of(f"""
        kernel @k(%a: f32[24] in, %b: f32[30] in, %c: f32[20] out) {{
          for i in 4 parallel {{
            for j in 5 parallel {{
              acc s: f32 = add f32(0.0)
              for l in 6 reduce {{
                x: f32 = load %a[6*i + l]
                y: f32 = load %b[5*l + j]
                {inner}
                update s with p
              }}
              r = read s
              store %c[5*i + j] = r
            }}
          }}
        }}""")


@pytest.mark.parametrize(
    "inner",
    [
        "p: f32 = add(x, y)",
        "q: f32 = mul(x, y)\n                p: f32 = exp(q)",
        "p: f32 = mul(x, f32(2.0))",
    ],
)
def test_what_is_none(inner: str):
    kernel = kernel_that_sums(inner)
    assert find_contraction(kernel) is None
    check_scheduled(kernel, WIDE, natively=False)


def test_a_sum_of_squares_multiplies_what_it_reads_once():
    kernel = kernel_that_sums("p: f32 = mul(x, x)")
    found = find_contraction(kernel)
    assert found is not None and found.a is found.b
    check_scheduled(kernel, WIDE, natively=False)


def test_the_inner_loop_of_a_large_product_has_no_spills():
    kernel = check_scheduled(plain(64, 256, 64), WIDE, natively=False).kernel("k")
    unrolled = [s.axis.extent for s, _ in walk(kernel.body) if isinstance(s, Loop) and s.kind == "unroll"]
    assert np.prod(unrolled[:2]) >= 16


@pytest.mark.parametrize(
    "epilogue",
    [
        "%r = maximum(%a, f32(0.0)) : f32[9,21]",
        "%t = tanh(%a) : f32[9,21]\n          %r = mul(%t, %c) : f32[9,21]",
    ],
)
def test_what_is_done_with_a_product_is_done_in_its_registers(epilogue: str, machine: Target):
    graph = graph_of(f"""
        graph @g(%x: f32[9,13], %w: f32[21,13], %b: f32[21], %c: f32[9,21]) -> (f32[9,21]) {{
          %m = matmul(%x, %w) {{transpose_a=false, transpose_b=true}} : f32[9,21]
          %a = add(%m, %b) : f32[9,21]
          {epilogue}
          return %r
        }}""")
    check_graph(graph, random_arguments(graph), machine)


@pytest.mark.parametrize(
    "x,w,attrs,y",
    [
        ("2,3,9,11", "5,3,3,3", "stride=[1,1], padding=[[1,1],[1,1]], dilation=[1,1], groups=1", "2,5,9,11"),
        ("1,4,12,12", "6,2,5,3", "stride=[2,1], padding=[[2,0],[0,1]], dilation=[1,2], groups=2", "1,6,5,9"),
        ("2,6,7,7", "6,1,3,3", "stride=[1,1], padding=[[0,0],[0,0]], dilation=[1,1], groups=6", "2,6,5,5"),
        ("2,8,5,5", "17,8,1,1", "stride=[1,1], padding=[[0,0],[0,0]], dilation=[1,1], groups=1", "2,17,5,5"),
        ("1,1,28,28", "10,1,5,5", "stride=[1,1], padding=[[0,0],[0,0]], dilation=[1,1], groups=1", "1,10,24,24"),
        ("2,3,40", "4,3,7", "stride=[3], padding=[[3,3]], dilation=[1], groups=1", "2,4,14"),
    ],
)
def test_convolutions(x: str, w: str, attrs: str, y: str, machine: Target):
    kernel = w.split(",", 2)[2]
    size = x.split(",", 2)[2]
    graph = graph_of(f"""
        graph @g(%x: f32[{x}], %w: f32[{w}]) -> (f32[{y}], f32[{w}], f32[{x}]) {{
          %y = conv(%x, %w) {{{attrs}}} : f32[{y}]
          %dw = conv_grad_weight(%x, %y) {{kernel=[{kernel}], {attrs}}} : f32[{w}]
          %dx = conv_grad_input(%y, %w) {{size=[{size}], {attrs}}} : f32[{x}]
          return %y, %dw, %dx
        }}""")
    check_graph(graph, random_arguments(graph), machine, Tolerance(1e-4, 5e-6))


@pytest.mark.parametrize(
    "a,b,y", [("3,4,5", "3,5,6", "3,4,6"), ("2,1,4,5", "3,5,6", "2,3,4,6"), ("5,7", "2,7,9", "2,5,9")]
)
def test_batched_products(a: str, b: str, y: str, machine: Target):
    graph = graph_of(f"""
        graph @g(%a: f32[{a}], %b: f32[{b}]) -> (f32[{y}]) {{
          %m = matmul(%a, %b) {{transpose_a=false, transpose_b=false}} : f32[{y}]
          return %m
        }}""")
    check_graph(graph, random_arguments(graph), machine)


OF_SUMS = """\
kernel @k(%a: f32[96] in, %b: f32[384] in, %f: f32[48] in, %c: f32[64] out) {
  for i in 4 parallel {
    for j in 16 parallel {
      acc s: f32 = add f32(0.0)
      for g in 3 reduce {
        acc t: f32 = add f32(0.0)
        for k in 8 reduce {
          x: f32 = load %a[24*i + 8*g + k]
          y: f32 = load %b[128*g + 16*k + j]
          p: f32 = mul(x, y)
          update t with p
        }
        r = read t
        e: f32 = load %f[16*g + j]
        q: f32 = mul(FACTORS)
        update s with q
      }
      v = read s
      store %c[16*i + j] = v
    }
  }
}
"""


@pytest.mark.parametrize(("factors", "found"), [("r, e", True), ("e, r", True), ("r, r", False), ("e, e", False)])
def test_a_sum_of_sums_takes_each_times_what_is_read(factors: str, found: bool):
    kernel = canonical(parse_kernel(OF_SUMS.replace("FACTORS", factors)), Names())
    assert (find_contraction(kernel) is not None) is found
