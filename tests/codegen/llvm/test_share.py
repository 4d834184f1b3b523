"""Bounds of shared loops: the emitted arithmetic covers each iteration once, whatever the weights and the chunks."""

from __future__ import annotations

import ctypes
from itertools import pairwise

import pytest

from graphc.base.sizes.named_dims import Dim
from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.function import FunctionWriter
from graphc.codegen.llvm.module import Item, text_of
from graphc.codegen.llvm.share import ShareWriter
from graphc.codegen.machine.target import host_target
from graphc.codegen.schedule.threads.chunks import Chunking, Share
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.statements import Kernel
from graphc.runtime.loader import host, load_object

A, B = Axis("a", 5), Axis("b", 7)


def bounds_of(chunking: Chunking, axis: Axis, outer: Axis | None = None, *dims: str):
    """A native function (chunk, chunks, iteration of ``outer``, sizes of ``dims``) -> (start, end) of a loop."""
    declarations: dict[str, Item] = {}
    function = FunctionWriter(declarations)
    share = ShareWriter(function, chunking)
    share.start()
    if outer is not None:
        share.enter(outer, "%at")
    start, end = share.bounds(axis)
    parameters = ", ".join(f"i64 %{name}" for name in ("chunk", "chunks", "at", *(f"n.{dim}" for dim in dims)))
    text = [*map(text_of, declarations.values()), f"define void @entry({parameters}, ptr %out) {{", "entry:"]
    text += [function.text(), f"  store i64 {start}, ptr %out", "  %next = getelementptr i64, ptr %out, i64 1"]
    text += [f"  store i64 {end}, ptr %next", "  ret void", "}"]
    library = load_object(build_object("\n".join(text), host_target(), quick=True), "entry", host())
    native = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * (3 + len(dims)), ctypes.c_void_p)(library.address)

    def call(chunk: int, chunks: int, at: int = 0, *sizes: int) -> tuple[int, int]:
        out = (ctypes.c_int64 * 2)()
        native(chunk, chunks, at, *sizes, ctypes.addressof(out))
        assert library.address  # the code lives as long as the library
        return out[0], out[1]

    return call


def chunking(grains: int, **shares: Share) -> Chunking:
    return Chunking(Kernel("k", (), ()), grains, {{"a": A, "b": B}[name]: share for name, share in shares.items()})


@pytest.mark.parametrize("rest", [0, 3])
@pytest.mark.parametrize("offset", [0, 4, 11])
@pytest.mark.parametrize("weight", [1, 2, 7])
def test_parts_of_one_loop_follow_each_other(offset: int, weight: int, rest: int):
    call = bounds_of(chunking(offset + 5 * weight + rest, a=Share(offset, weight, True)), A)
    for chunks in (1, 2, 3, 4, 50):
        shares = [call(chunk, chunks) for chunk in range(chunks)]
        assert shares[0][0] == 0 and shares[-1][1] == 5
        assert all(before[1] == after[0] for before, after in pairwise(shares))
        assert all(start <= end for start, end in shares)


@pytest.mark.parametrize("offset,rest,limits", [(0, 0, ""), (4, 0, "smax"), (0, 3, "smin"), (4, 3, "smax smin")])
def test_bounds_are_limited_only_where_other_loops_have_grains(offset: int, rest: int, limits: str):
    declarations: dict[str, Item] = {}
    share = ShareWriter(FunctionWriter(declarations), chunking(offset + 10 + rest, a=Share(offset, 2, True)))
    share.start()
    share.bounds(A)
    assert sorted(declarations) == [f"llvm.{name}.i64" for name in limits.split()]


@pytest.mark.parametrize("weight", [1, 3])
def test_an_opened_loop_is_entered_where_it_holds_grains(weight: int):
    tail = 2
    whole = chunking(5 * (7 * weight + tail), a=Share(0, 7 * weight + tail, False), b=Share(tail, weight, True))
    outer, inner = bounds_of(whole, A), bounds_of(whole, B, A)
    for chunks in (1, 2, 3, 8, 100):
        seen = []
        for chunk in range(chunks):
            start, end = outer(chunk, chunks)
            assert 0 <= start <= end <= 5
            for at in range(start, end):
                first, last = inner(chunk, chunks, at)
                seen += [(at, i) for i in range(first, last)]
        assert seen == [(a, b) for a in range(5) for b in range(7)]


@pytest.mark.parametrize("chunks", [1, 2, 3, 16])
def test_parts_of_loops_of_run_time_sizes_cover_each_iteration_once(chunks: int):
    n, m = Dim("n", 0, 40), Dim("m", 1, 9)
    outer, inner = Axis("a", m), Axis("b", n)
    shares = {outer: Share(2 * n, 3 * n, False), inner: Share(0, 3, True)}
    found = Chunking(Kernel("k", (), ()), 2 * n + 3 * n * m, shares)
    around, inside = bounds_of(found, outer, None, "n", "m"), bounds_of(found, inner, outer, "n", "m")
    for size, count in ((0, 1), (0, 9), (1, 1), (7, 3), (40, 9)):
        done = []
        for chunk in range(chunks):
            first, last = around(chunk, chunks, 0, size, count)
            for at in range(first, last):
                start, end = inside(chunk, chunks, at, size, count)
                done += [(at, i) for i in range(start, end)]
        assert done == [(at, i) for at in range(count) for i in range(size)]
