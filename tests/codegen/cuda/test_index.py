"""Indices, guards and sizes as CUDA C."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import int64
from graphc.base.sizes.named_dims import Dim, dimensions
from graphc.base.sizes.size import at
from graphc.codegen.cuda.index import IndexWriter, parameter_of, reach, size_text
from graphc.ir.kernel.index import Axis, Div, Index, Mod, as_index
from graphc.ir.kernel.statements import Bound, Buffer, IndexLet, Kernel, Loop, Store
from graphc.runtime.devices.emulated import EmulatedDevice
from tests.codegen.cuda.running import launch_kernels

AXIS = Axis("i", 40)
EACH = as_index(AXIS)


def evaluated(index: Index, count: int = 40) -> list[int]:
    body = (IndexLet("v", index, int64), Store("y", EACH, "v"))
    kernel = Kernel("k", (Buffer("y", int64, count, "out"),), (Loop(AXIS, "grid", body),), threads=32)
    (left,) = launch_kernels(EmulatedDevice(), [kernel], [{"y": np.zeros(count, np.int64)}])
    return left["y"].tolist()


def test_quotients_of_what_may_be_negative_are_rounded_down():
    below = EACH - 20
    assert evaluated(Index(((Div(below, 7), 1),))) == [(i - 20) // 7 for i in range(40)]
    assert evaluated(Index(((Mod(below, 7), 3),), 1)) == [3 * ((i - 20) % 7) + 1 for i in range(40)]
    assert evaluated(Index(((Div(EACH, 7), 1), (Mod(EACH, 7), 100)))) == [i // 7 + 100 * (i % 7) for i in range(40)]


def test_bounds_that_always_hold_are_not_tested():
    writer = IndexWriter(False, {AXIS: "i"})
    assert writer.guard((Bound(EACH, 0, 40),)) == "true"
    assert writer.guard((Bound(EACH, 0, 30),)) == "i < 30"
    assert writer.guard((Bound(EACH - 3, 0, 40),)) == "(i + (-3)) >= 0"


def test_indices_beyond_31_bits_are_wide():
    assert IndexWriter(True, {AXIS: "i"}).index(EACH * 2**31) == "2147483648ll * i"
    assert IndexWriter(False, {AXIS: "i"}).index(EACH * 3 + 1) == "(3 * i + 1)"


def test_kernels_whose_indices_reach_beyond_31_bits_compute_wide():
    assert evaluated(EACH * 10**9 - 7) == [10**9 * i - 7 for i in range(40)]
    assert evaluated(Index(((Mod(EACH * 10**8, 977), 1),))) == [10**8 * i % 977 for i in range(40)]
    assert reach(Index(((Mod(EACH, 7), 100),), -5)) == 605
    assert reach(Index(((Div(EACH * 10**9, 10**9), 2),))) == 39 * 10**9


@pytest.mark.parametrize("size", ["n", "n * n * 3 + 5", "(n + 3) // 4 - 7", "2 * n - 64", "abs(n - 7)"])
def test_sizes_are_computed_from_dimensions(size: str):
    value = eval(size, {"n": Dim("n", 1, 64)})
    n = dimensions([value])["n"]
    text = size_text(value).replace("ll", "").replace("/", "//").replace("gc_floor_div<long long>", "floor_div")
    text = text.replace("gc_max<long long>", "max")
    for number in (1, 7, 64):
        named = {parameter_of(n): number, "floor_div": lambda a, b: a // b, "max": max}
        assert eval(text, named) == at(value, {n: number})
