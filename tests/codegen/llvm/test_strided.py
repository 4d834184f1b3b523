"""Loads at short strides: spans that overlap are one, and every lane is picked from a vector inside of its span."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graphc.codegen.llvm.strided import Pattern, merge_spans, vectors_of
from graphc.ir.kernel.index import Axis, as_index

X: Pattern = ("x", as_index(Axis("i", 4)) * 7)
Y: Pattern = ("y", as_index(Axis("i", 4)) * 7)


def test_spans_that_overlap_are_one():
    reads = [(X, 2, 33), (X, 100, 131), (X, 0, 31), (Y, 1, 32), (X, 33, 40)]
    assert merge_spans(reads) == {X: [(0, 33), (33, 40), (100, 131)], Y: [(1, 32)]}


@given(st.sampled_from([4, 8, 16]), st.integers(2, 4), st.integers(1, 16), st.integers(0, 9), st.integers(0, 40))
def test_every_lane_is_picked_once(lanes: int, stride: int, used: int, first: int, after: int):
    positions = [first + stride * lane for lane in range(min(used, lanes))]
    size = max(lanes, positions[-1] + 1 + after)
    result: list[int | None] = [None] * lanes
    for start, picks in vectors_of(positions, size, lanes):
        assert 0 <= start <= size - lanes and len(picks) == lanes
        sources = [*result, *range(start, start + lanes)]
        result = [None if p is None else sources[p] for p in picks]
    assert result[: len(positions)] == positions


def test_a_span_is_read_once():
    starts = {start for first in (0, 1, 2) for start, _ in vectors_of([first + 2 * i for i in range(16)], 33, 16)}
    assert starts == {0, 16, 17}
