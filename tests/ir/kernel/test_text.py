"""Text form of kernels and programs."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import bool_, float32, float64, int64
from graphc.ir.kernel.index import Axis, Dynamic, Index, as_index
from graphc.ir.kernel.statements import (
    Acc,
    Bound,
    Buffer,
    Const,
    IndexLet,
    Kernel,
    Let,
    Load,
    Loop,
    Prefetch,
    Program,
    Read,
    Stmt,
    Storage,
    Store,
    Update,
)
from graphc.ir.kernel.text import (
    collect_data,
    kernel_lines,
    print_kernel,
    print_program,
    print_stmt,
    program_lines,
)
from graphc.ir.literal import digest

I0, J0 = as_index(Axis("i0", 8)), as_index(Axis("i1", 4))
N = Index(((Dynamic("v9", 0, 9), 1),))
STATEMENTS: list[tuple[Stmt, str]] = [
    (Let("v1", "neg", (Const(0.5, float32),), float32), "v1: f32 = neg(f32(0.5))"),
    (Let("v1", "select", ("c", "a", Const(1.0, float64)), float64), "v1: f64 = select(c, a, f64(1.0))"),
    (Let("v1", "lt", ("a", "b"), bool_), "v1: bool = lt(a, b)"),
    (IndexLet("v1", 2 * I0 + 1, int64), "v1: i64 = index 2*i0 + 1"),
    (Load("v1", "x", I0 * 4 + J0, float32), "v1: f32 = load %x[4*i0 + i1]"),
    (Load("v1", "x y", N, float32), 'v1: f32 = load %"x y"[[v9:0..9]]'),
    (
        Load("v1", "x", I0 - 1, float32, (Bound(I0 - 1, 0, 5), Bound(J0, 1, 2)), Const(float("-inf"), float32)),
        "v1: f32 = load %x[i0 - 1] if 0 <= i0 - 1 < 5 and 1 <= i1 < 2 else f32(-inf)",
    ),
    (Store("y", I0 // 3, "v1"), "store %y[(i0 // 3)] = v1"),
    (Store("y", (I0 + J0) % 3, "v1", (Bound(I0, 0, 5),), "add"), "store %y[((i0 + i1) % 3)] add= v1 if 0 <= i0 < 5"),
    (Acc("a", float32, "max", Const(float("nan"), float32)), "acc a: f32 = max f32(nan)"),
    (Acc("a", float32, "add", "v1"), "acc a: f32 = add v1"),
    (Update("a", "v1"), "update a with v1"),
    (Read("v1", "a"), "v1 = read a"),
    (Prefetch("x", I0 * 4 + 640), "prefetch %x[4*i0 + 640]"),
    (Loop(Axis("i0", 8), "vector", ()), "for i0 in 8 vector {"),
    (Loop(Axis("i0", 8), "reduce", (), "v1"), "for i0 in 8 reduce until v1 {"),
    (Loop(Axis("i0", 8), "serial", (), "v1"), "for i0 in 8 serial until v1 {"),
]


@pytest.mark.parametrize(("stmt", "text"), STATEMENTS)
def test_statement(stmt: Stmt, text: str):
    assert print_stmt(stmt) == text


def test_kernel():
    body = (
        Loop(Axis("i0", 8), "parallel", (Loop(Axis("i1", 4), "reduce", (Read("v1", "a"),)), Read("v2", "a"))),
        Read("v3", "a"),
    )
    buffers = (Buffer("x", float32, 32, "in"), Buffer("t", int64, 1, "scratch"))
    kernel = Kernel("k0", buffers, body, ("layers.0", 'a "b"'))
    text = r"""kernel @k0(%x: f32[32] in, %t: i64[1] scratch) from "layers.0", "a \"b\"" {
  for i0 in 8 parallel {
    for i1 in 4 reduce {
      v1 = read a
    }
    v2 = read a
  }
  v3 = read a
}
"""
    assert print_kernel(kernel) == text
    lines = kernel_lines(kernel)
    assert [line for line, _ in lines] == text.rstrip("\n").split("\n")
    assert [number for number, (_, stmt) in enumerate(lines) if stmt is not None] == [1, 2, 3, 5, 7]
    assert lines[3][1] is body[0].body[0].body[0]


def test_program():
    large = np.zeros(17, np.float32)
    storages = (
        Storage("x", float32, (2, 16), "input"),
        Storage("w", float32, (), "param", "fc.weight"),
        Storage("y", float32, (32,), "output", alias="x"),
        Storage("c", bool_, (2,), "constant", data=np.array([True, False])),
        Storage("d", float32, (17,), "constant", data=large),
        Storage("t", float32, (3,), "temp", offset=64),
    )
    kernel = Kernel("k", (Buffer("y", float32, 32, "in"),), ())
    program = Program("main", storages, (kernel,), (), 128)
    text = f"""program @main arena 128 {{
  input %x: f32[2,16]
  param %w: f32[] "fc.weight"
  output %y: f32[32] alias %x
  constant %c: bool[2] = bool[2](true, false)
  constant %d: f32[17] = f32[17]({digest(large)})
  temp %t: f32[3] at 64

  kernel @k(%y: f32[32] in) {{
  }}
}}
"""
    assert print_program(program) == text
    assert list(collect_data(program)) == [digest(large)]
    lines = program_lines(program)
    assert [line for line, _ in lines] == text.rstrip("\n").split("\n")
    assert lines[8][1] is kernel
