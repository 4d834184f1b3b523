"""Ranges under guards: intervals contain what enumeration finds, and enumeration finds what is there."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphc.base.sizes.named_dims import Dim
from graphc.ir.kernel.index import Axis, Dynamic, Index, as_index, axes_of, substitute
from graphc.ir.kernel.index_range import guarded_bounds, guarded_range, stays_within, touches
from graphc.ir.kernel.statements import Bound, Guard
from tests.ir.random_kernels import indices

AXES = [Axis("a", 3), Axis("b", 4), Axis("c", 5)]
A, B, C = (as_index(a) for a in AXES)
BOUNDS = st.builds(lambda i, low, n: Bound(i, low, low + n), indices(AXES), st.integers(-6, 6), st.integers(0, 8))


def points(index: Index, guard: Guard) -> list[int]:
    """Every value of the index where the guard holds."""
    found = []
    for place in product(*(range(a.extent) for a in AXES)):
        at = dict(zip(AXES, place, strict=True))

        def value(expression: Index, at: dict = at) -> int:
            return substitute(expression, lambda axis: at[axis]).constant

        if all(b.low <= value(b.index) < b.high for b in guard):
            found.append(value(index))
    return found


@settings(max_examples=150, deadline=None)
@given(indices(AXES), st.lists(BOUNDS, max_size=3).map(tuple))
def test_bounds_contain_every_point(index: Index, guard: Guard):
    found = points(index, guard)
    low, high = guarded_bounds(index, guard)
    assert all(low <= p <= high for p in found)
    exact = guarded_range(index, guard)
    assert exact is not None
    assert exact == (min(found), max(found)) if found else exact[0] > exact[1]


@settings(max_examples=150, deadline=None)
@given(indices(AXES), st.lists(BOUNDS, max_size=2).map(tuple), st.integers(0, 30))
def test_stays_within_is_exact_for_small_loops(index: Index, guard: Guard, size: int):
    inside = all(0 <= p < size for p in points(index, guard))
    assert (stays_within(index, guard, size) is None) == inside


@pytest.mark.parametrize(
    ("index", "guard", "expected"),
    [
        (4 * A + B, (), (0, 11)),
        (4 * A + B, (Bound(4 * A + B, 0, 10),), (0, 9)),
        (A - 1, (Bound(A - 1, 0, 9),), (0, 1)),
        (8 * A + 8 * B - 8 + C - 1, (Bound(A + B - 1, 0, 4), Bound(C - 1, 0, 3)), (0, 26)),
        (as_index(3) - B, (Bound(B, 1, 4),), (0, 2)),
        ((A + B) // 2, (Bound(A + B, 2, 4),), (1, 1)),
        (10 * ((A + B) // 2) + C, (Bound(A + B, 2, 4), Bound(C, 0, 2)), (10, 11)),
        (A, (Bound(2 * A + 1, 2, 5),), (1, 1)),
        (A, (Bound(5 - 2 * A, 2, 6),), (0, 1)),
    ],
)
def test_intervals_use_the_guard(index: Index, guard: Guard, expected: tuple[int, int]):
    assert guarded_bounds(index, guard) == expected


def test_guard_that_never_holds():
    assert stays_within(A + 100, (Bound(A, 7, 9),), 1) is None


def test_too_many_points_are_not_enumerated():
    wide = [as_index(Axis(f"w{i}", 1000)) for i in range(3)]
    index = (wide[0] + wide[1] + wide[2]) % 7 - (wide[0] + wide[2]) % 7 + 6
    assert guarded_range(index, ()) is None
    assert stays_within(index, (), 10) == guarded_bounds(index, ())


def test_run_time_terms_take_their_whole_range():
    n = Index(((Dynamic("n", -2, 5), 1),))
    assert guarded_range(3 * n + A, ()) == (-6, 17)
    assert guarded_bounds(3 * n, (Bound(n, 0, 9),)) == (0, 15)


def test_touches():
    assert touches(4 * A + B, (), AXES[0])
    assert not touches(B, (), AXES[0])
    assert touches(B, (Bound(A, 1, 2),), AXES[0])
    assert not touches(B, (Bound(A, 1, 3),), AXES[0])
    assert axes_of((A + C) // 2) == {AXES[0], AXES[2]} and touches((A + C) // 2, (), AXES[2])


def test_guard_that_holds_an_axis_inside_a_remainder_too():
    index = C + C % 3
    assert guarded_bounds(index, (Bound(index, 1, 4),)) == (1, 3)


def test_parts_without_a_common_variable_are_enumerated_one_by_one():
    """A gradient spread out with zeros: more points than may be looked at together, few in each dimension."""
    many, row, column = (as_index(Axis(n, e)) for n, e in (("m", 4096), ("r", 63), ("c", 64)))
    index = 1024 * many + 32 * (row // 2) + column // 2 - 1
    guard = (Bound(row % 2, 0, 1), Bound(column - 2, 0, 62), Bound(column % 2, 0, 1))
    assert guarded_range(index, guard) == (0, 4095 * 1024 + 31 * 32 + 30)
    assert stays_within(index, guard, 4096 * 1024) is None
    assert guarded_range(index, (*guard, Bound(row, 70, 80))) == (1, 0)


def test_a_guarded_expression_bounds_its_quotient_inside_a_sum():
    n = Dim("n", 1, 1000)
    outer, lane = (as_index(Axis(name, size)) for name, size in (("o", n // 4 + 1), ("l", 8)))
    guard = (Bound(8 * outer + lane - 1, 0, 2 * n),)
    assert stays_within(4 * outer + (lane - 1) // 2, guard, n) is None
    assert stays_within(4 * outer + (lane - 1) // 2, guard, n - 1) is not None
    assert stays_within(4 * outer + (lane - 1) // 2, (), n) is not None


def test_a_guarded_position_in_a_plane_bounds_its_row():
    n, m = Dim("n", 1, 1000), Dim("m", 1, 1000)
    row, column = (as_index(Axis(name, size)) for name, size in (("i", 3 * m), ("j", n)))
    guard = (Bound(row * n + column - 2 * m * n, 0, m * n),)
    assert stays_within(row - 2 * m, guard, m) is None
    assert stays_within(row - 2 * m, guard, m - 1) is not None


def test_a_condition_on_one_side_bounds_places_in_the_plane():
    h, w = Dim("h", 1, 1000), Dim("w", 1, 1000)
    column = as_index(Axis("j", w))
    third_from_last = (Bound(as_index(h - 3), 0, h),)
    assert stays_within(column + (h * w - 3 * w), third_from_last, h * w) is None
    assert stays_within(column + (h * w - 4 * w), third_from_last, h * w) is not None
    assert stays_within(column + (h * w - 3 * w), (), h * w) is not None


def test_a_guarded_quotient_by_a_size_bounds_its_operand():
    """Two matrices of open sizes, joined and flattened: the row decides which one an element comes from."""
    rows, columns = Dim("rows", 1, 1000), Dim("columns", 1, 1000)
    i = as_index(Axis("i", 2 * rows * columns))
    assert stays_within(i, (Bound(i // columns, 0, rows),), rows * columns) is None
    assert stays_within(i, (Bound(i // columns, 0, rows),), rows * columns - 1) is not None
    assert stays_within(i - rows * columns, (Bound(i // columns - rows, 0, rows),), rows * columns) is None


def test_a_condition_on_one_side_bounds_places_in_a_plane_of_sums():
    h, w = 32 * Dim("h", 0, 1000) + 31, 32 * Dim("w", 0, 1000) + 31
    column = as_index(Axis("j", w))
    late = (Bound(as_index(h - 40), 0, h),)
    assert stays_within(column + (h * w - 40 * w), late, h * w) is None
    assert stays_within(column + (h * w - 41 * w), late, h * w) is not None
