"""Accesses along an axis: what is the same element, the next one, one at a distance, or anywhere."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from graphc.ir.kernel.access import GATHERED, UNIFORM, UNIT, Access, access
from graphc.ir.kernel.index import Axis, Dynamic, Index, as_index, substitute

ROW, COLUMN = Axis("i", 8), Axis("j", 4)
DATA = Index(((Dynamic("d", 0, 4), 1),))


def test_kinds_of_accesses():
    assert access(as_index(COLUMN), ROW) == UNIFORM
    assert access(as_index(ROW) + 5, ROW) == UNIT
    assert access(as_index(ROW) * 3 + as_index(COLUMN), ROW) == Access("strided", 3)
    assert access(as_index(ROW) * -1, ROW) == Access("strided", -1)
    assert access(as_index(ROW) // 3, ROW) == GATHERED
    assert access(as_index(COLUMN) // 3 + as_index(ROW), ROW) == UNIT


def test_what_depends_on_data_is_gathered_unless_the_data_are_the_same():
    assert access(DATA, ROW) == GATHERED
    assert access(DATA + as_index(ROW), ROW, {"e"}) == UNIT
    assert access(DATA + as_index(ROW), ROW, {"d"}) == GATHERED
    assert access((DATA + as_index(COLUMN)) // 2 + as_index(ROW), ROW, {"d"}) == GATHERED
    assert access((DATA + as_index(COLUMN)) // 2 + as_index(ROW), ROW, ()) == UNIT


def test_one_vector_operation_reads_what_is_uniform_or_contiguous():
    assert UNIFORM.plain and UNIT.plain
    assert not GATHERED.plain and not Access("strided", 2).plain


@given(st.integers(-4, 4), st.integers(-4, 4), st.integers(1, 5), st.booleans())
def test_the_stride_is_the_distance_of_neighbours(i: int, j: int, divisor: int, divided: bool):
    index = as_index(ROW) * i + (as_index(COLUMN) * j // divisor if divided else as_index(COLUMN) * j)
    for axis, other in ((ROW, COLUMN), (COLUMN, ROW)):
        found = access(index, axis)
        places = [
            substitute(index, lambda a, n=n, axis=axis: n if a == axis else 1).constant for n in range(axis.extent)
        ]
        if found != GATHERED:
            assert {b - a for a, b in pairwise(places)} == {found.stride}
        assert other != axis
