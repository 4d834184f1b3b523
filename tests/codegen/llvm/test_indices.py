"""Indices as registers: quotients and remainders by sizes known at run time, and masks of the lanes in use."""

from __future__ import annotations

import ctypes

import pytest

from graphc.base.sizes.named_dims import Dim
from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.function import FunctionWriter
from graphc.codegen.llvm.indices import IndexWriter, VectorAxis
from graphc.codegen.machine.target import host_target
from graphc.ir.kernel.index import Axis, Index, as_index
from graphc.runtime.loader import host, load_object

N = Dim("n", 1, 30)
ROW, LANE = Axis("i", 12), Axis("l", 8)
NUMBER = as_index(ROW) - 7
"""-7..4"""


def native(index: Index, vector: VectorAxis | None = None):
    """A function (n, i) -> the index, or that of the last lane."""
    function = FunctionWriter({})
    function.scopes[0].axis, function.scopes[0].register = ROW, "%i"
    writer = IndexWriter(function, lambda name: pytest.fail(name))
    writer.vector = vector
    if vector is None:
        register = writer.scalar_index(index, {})
    else:
        register = function.line(f"extractelement <8 x i64> {writer.vector_index(index, {})}, i64 7")
    declarations = "\n".join(map(str, function.declarations.values()))
    text = f"{declarations}\ndefine i64 @f(i64 %n.n, i64 %i) {{\nentry:\n{function.text()}\n  ret i64 {register}\n}}\n"
    library = load_object(build_object(text, host_target()), "f", host())
    found = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(library.address)
    found.library = library  # type: ignore[attr-defined]
    return found


def test_an_index_with_sizes():
    f = native(NUMBER * N + 3 * N - 5)
    assert all(f(n, i) == (i - 7) * n + 3 * n - 5 for n in (1, 2, 30) for i in range(12))


@pytest.mark.parametrize("lift", [0, 7])
def test_quotients_and_remainders_by_a_size(lift: int):
    quotient, remainder = native((NUMBER + lift) // N), native((NUMBER + lift) % N)
    for n in (1, 2, 5, 30):
        for i in range(12):
            assert (quotient(n, i), remainder(n, i)) == divmod(i - 7 + lift, n)


@pytest.mark.parametrize("lift", [0, 7])
def test_quotients_and_remainders_by_a_size_over_lanes(lift: int):
    index = NUMBER + lift + as_index(LANE) * N
    vector = VectorAxis(LANE, 8)
    found = [native(x, vector) for x in (index // (N + 1), index % (N + 1), index * N)]
    for n in (1, 2, 5, 30):
        for i in range(12):
            place = i - 7 + lift + 7 * n
            assert [f(n, i) for f in found] == [*divmod(place, n + 1), place * n]


def test_a_mask_is_made_once_in_each_block():
    function = FunctionWriter({})
    writer = IndexWriter(function, lambda name: pytest.fail(name))
    writer.vector = VectorAxis(Axis("q", N % 8), 8)
    first = writer.mask()
    assert writer.mask() == first and first.startswith("%")
    function.open_loop(Axis("j", 3))
    assert writer.mask() != first
    writer.vector = VectorAxis(Axis("q", 3), 4)
    assert writer.mask() == "<i1 true, i1 true, i1 true, i1 false>"
