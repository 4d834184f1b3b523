"""Records of the kernel IR."""

from __future__ import annotations

import math

from graphc.base.dtypes import float32, float64, int64
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.statements import Buffer, Call, Const, Kernel, Let, Loop, Program, Storage, walk


def test_literals_are_equal_when_they_print_alike():
    nan = Const(math.nan, float32)
    assert nan == Const(math.nan, float32) and hash(nan) == hash(Const(math.nan, float32))
    assert Const(0.0, float32) != Const(-0.0, float32)
    assert Const(1, float32) != Const(1.0, float32) != Const(1.0, float64)
    assert repr(Const(0.5, float32)) == "f32(0.5)"


def test_arguments_are_the_buffers_that_a_call_binds():
    x, y, t = Buffer("x", float32, 4, "in"), Buffer("y", float32, 4, "out"), Buffer("t", float32, 4, "scratch")
    kernel = Kernel("k", (x, y, t), ())
    assert kernel.arguments == (x, y) and kernel.buffer("t") is t
    assert kernel == Kernel("k", (x, y, t), ()) and hash(kernel) == hash(Kernel("k", (x, y, t), ()))


def test_walk_is_in_order_with_the_loops_around():
    a, b, c = (Let(name, "neg", (Const(1.0, float32),), float32) for name in "abc")
    inner = Loop(Axis("j", 2), "reduce", (b,))
    outer = Loop(Axis("i", 2), "parallel", (a, inner))
    assert list(walk((outer, c))) == [(outer, ()), (a, (outer,)), (inner, (outer,)), (b, (outer, inner)), (c, ())]


def test_storages():
    storage = Storage("x", float64, (2, 3), "input")
    assert (storage.size, storage.nbytes) == (6, 48)
    assert Storage("s", int64, (), "state").size == 1
    kernel = Kernel("k", (), ())
    program = Program("p", (storage,), (kernel,), (Call("k", ()),))
    assert program.storage("x") is storage and program.kernel("k") is kernel
