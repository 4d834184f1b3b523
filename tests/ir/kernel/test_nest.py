"""The builder of kernel bodies: sharing, folding, scopes, and the kernels it makes."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import bool_, float32, float64, int32, int64
from graphc.errors import VerifyError
from graphc.ir.kernel.index import Axis, Index, as_index
from graphc.ir.kernel.interpret import run_kernel
from graphc.ir.kernel.nest import NestBuilder, simplify
from graphc.ir.kernel.statements import Acc, Bound, Buffer, Const, Kernel, Let, Load, Loop, Store
from graphc.ir.kernel.verify import verify_kernel

I0 = as_index(Axis("i0", 8))


def kernel(nest: NestBuilder, **buffers: str) -> Kernel:
    """A verified kernel; each buffer is given as ``role size`` and holds f32."""
    made = tuple(Buffer(n, float32, int(d.split()[1]), d.split()[0]) for n, d in buffers.items())
    result = Kernel("k", made, nest.body())
    verify_kernel(result)
    return result


def test_equal_expressions_are_shared():
    nest = NestBuilder()
    x = nest.load_at("x", 0, float32)
    assert (x + 1).ref == (x + 1.0).ref == nest.op("add", x, nest.const(1, float32)).ref
    assert nest.load_at("x", 0, float32).ref == x.ref
    assert nest.load_at("x", 1, float32).ref != x.ref
    assert len(nest.body()) == 3


def test_inner_values_are_not_used_outside():
    nest = NestBuilder()
    with nest.loop(4) as i:
        inner = nest.load_at("x", i, float32) + nest.load_at("x", 0, float32)
    outer = nest.load_at("x", 0, float32)
    with nest.loop(4) as j:
        nest.store_at("y", j, nest.load_at("x", 0, float32) + outer)
    assert inner.ref != outer.ref
    first, load, second = nest.body()
    assert isinstance(first, Loop) and len(first.body) == 3
    assert isinstance(load, Load) and load.name == outer.ref
    assert isinstance(second, Loop) and [type(s) for s in second.body] == [Let, Store]
    kernel(nest, x="in 4", y="out 4")


def test_loads_are_forgotten_after_a_store():
    nest = NestBuilder()
    before = nest.load_at("t", 0, float32)
    other = nest.load_at("x", 0, float32)
    nest.store_at("t", 0, other)
    assert nest.load_at("t", 0, float32).ref != before.ref
    assert nest.load_at("x", 0, float32).ref == other.ref


def test_literals_are_folded():
    nest = NestBuilder()
    value = nest.const(0.1, float32) * 3 + 1
    expected = np.float32(np.float32(0.1) * np.float32(3)) + np.float32(1)
    assert value.ref == Const(float(expected), float32)
    assert nest.op("div", nest.const(7, int64), nest.const(2, int64)).ref == Const(3, int64)
    assert nest.const(2.7, float32).cast(int32).ref == Const(2, int32)
    assert nest.index(5).ref == Const(5, int64)
    assert nest.body() == ()


def test_operators_check_types():
    nest = NestBuilder()
    with pytest.raises(VerifyError, match=r"add cannot take \(f32, f64\)"):
        _ = nest.load_at("x", 0, float32) + nest.load_at("z", 0, float64)


def test_every_operator():
    nest = NestBuilder()
    x, y = nest.load_at("x", 0, float32), nest.load_at("x", 1, float32)
    results = [x + y, 2 - x, x * y, 1 / x, x / y, -x, x - 1, 3 * x, 1 + x]
    p, q = x < y, x >= 2
    results.append(nest.select((p & q) | ~p ^ (x <= y), x, 0))
    results.append(nest.select(x.eq(y), 1, y))
    results.append(nest.select(x.ne(y) & (x > 0), nest.fma(x, y, 1), y))
    for k, result in enumerate(results):
        nest.store_at("y", k, result)
    arrays = {"x": np.array([3, 5], np.float32), "y": np.zeros(12, np.float32)}
    run_kernel(kernel(nest, x="in 2", y="out 12"), arrays)
    third = np.float32(1) / np.float32(3)
    assert arrays["y"].tolist() == [8, -1, 15, third, np.float32(3) / np.float32(5), -3, 2, 9, 4, 3, 5, 16]


def test_loops_of_one_iteration_leave_no_trace():
    nest = NestBuilder()
    with nest.loops((1, 3, 1)) as (i, j, k):
        assert (i, k) == (Index(), Index())
        nest.store_at("y", j, nest.const(1, float32))
    (loop,) = nest.body()
    assert isinstance(loop, Loop) and loop.axis == Axis("i0", 3) and len(loop.body) == 1
    with nest.loops(()) as none:
        assert none == ()


def test_reduce():
    nest = NestBuilder()
    with nest.loop(3) as i:
        total = nest.reduce("add", 0, float32, (2, 4), lambda j, k: nest.load_at("x", 8 * i + 4 * j + k, float32))
        nest.store_at("y", i, total * 2)
    (loop,) = nest.body()
    assert isinstance(loop, Loop) and isinstance(loop.body[0], Acc)
    arrays = {"x": np.arange(24, dtype=np.float32), "y": np.zeros(3, np.float32)}
    run_kernel(kernel(nest, x="in 24", y="out 3"), arrays)
    assert arrays["y"].tolist() == [2 * s for s in arrays["x"].reshape(3, 8).sum(1)]


def test_accumulator_starts_from_a_scalar():
    nest = NestBuilder()
    acc = nest.accumulator(float32, "add", nest.load_at("x", 0, float32))
    nest.update(acc, nest.const(2, float32))
    nest.store_at("y", 0, nest.read(acc, float32))
    arrays = {"x": np.array([5], np.float32), "y": np.zeros(1, np.float32)}
    run_kernel(kernel(nest, x="in 1", y="out 1"), arrays)
    assert arrays["y"][0] == 7


def test_guarded_load_and_store():
    nest = NestBuilder()
    with nest.loop(6) as i:
        value = nest.load_at("x", i - 1, float32, (Bound(i - 1, 0, 4),), 9)
        nest.store_at("y", i, value, (Bound(i, 0, 5),))
    arrays = {"x": np.array([1, 2, 3, 4], np.float32), "y": np.zeros(5, np.float32)}
    run_kernel(kernel(nest, x="in 4", y="out 5"), arrays)
    assert arrays["y"].tolist() == [9, 1, 2, 3, 4]


def test_guards_that_never_hold():
    nest = NestBuilder()
    assert nest.load_at("x", I0, float32, (Bound(I0, 9, 12),), 0.1).ref == Const(float(np.float32(0.1)), float32)
    nest.store_at("y", I0, nest.const(1, float32), (Bound(I0, -3, 0),))
    assert nest.condition((Bound(I0, 9, 12),)).ref == Const(False, bool_)
    assert nest.condition(()).ref == Const(True, bool_)
    assert nest.body() == ()


def test_simplify():
    useful = Bound(I0, 2, 5)
    assert simplify((Bound(I0, 0, 8), useful, useful)) == (useful,)
    assert simplify((useful, Bound(I0, 8, 9))) is None
    assert simplify(()) == ()


def test_condition():
    nest = NestBuilder()
    with nest.loop(6) as i:
        inside = nest.condition((Bound(i - 1, 0, 3), Bound(i, 0, 99)))
        nest.store_at("y", i, nest.select(inside, nest.const(1, float32), 0))
    arrays = {"y": np.zeros(6, np.float32)}
    run_kernel(kernel(nest, y="out 6"), arrays)
    assert arrays["y"].tolist() == [0, 1, 1, 1, 0, 0]


def test_dynamic_index():
    nest = NestBuilder()
    assert nest.dynamic(nest.const(3, int64), 0, 5) == as_index(3)
    with nest.loop(4) as i:
        place = nest.dynamic(nest.op("sub", nest.const(3, int64), nest.index(i)), 0, 3)
        nest.store_at("y", i, nest.load_at("x", place, float32))
    arrays = {"x": np.arange(4, dtype=np.float32), "y": np.zeros(4, np.float32)}
    run_kernel(kernel(nest, x="in 4", y="out 4"), arrays)
    assert arrays["y"].tolist() == [3, 2, 1, 0]
