"""Comparisons of sizes that hold for all values of their dimensions."""

import pytest

from graphc.base.sizes.named_dims import Dim
from graphc.base.sizes.size import larger, smaller
from graphc.base.sizes.size_relations import as_factor, at_most, exact_quotient, quotient_and_rest, sign, tighter, trend

BATCH, TIME = Dim("batch", 1, 64, hint=4), Dim("time", 1, 512, hint=128)


def test_order_and_sign():
    assert at_most(3, 4) and not at_most(4, 3) and at_most(TIME, 512) and at_most(1, TIME) and not at_most(TIME, BATCH)
    assert sign(TIME - 1) == 1 and sign(1 - TIME) == -1 and sign(TIME - 2) is None and sign(-3) == -1


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (6, 3, 2),
        (6, 4, None),
        (8 * TIME, 4, 2 * TIME),
        (TIME, 4, None),
        (BATCH * TIME + TIME, TIME, BATCH + 1),
        (TIME, BATCH, None),
        (3, TIME, None),
    ],
)
def test_exact_quotients(a, b, expected):
    assert exact_quotient(a, b) == expected


def test_quotients_with_a_rest():
    assert quotient_and_rest(7, 3) == (2, 1) and quotient_and_rest(TIME + 3, TIME) == (1, 3)
    assert quotient_and_rest(TIME + 7, 4) == (1, TIME + 3)


def test_the_tighter_bound_is_the_one_for_all_sizes_or_for_the_hints():
    assert tighter(2, 5, low=True) == 5 and tighter(2, 5, low=False) == 2
    assert tighter(TIME, 512, low=False) == TIME and tighter(0, TIME, low=True) == TIME
    assert tighter(TIME, BATCH, low=True) == TIME and tighter(TIME, BATCH, low=False) == BATCH


def test_a_size_that_is_clamped_still_rises():
    assert trend(smaller(TIME, 5)) == trend(larger(smaller(TIME // 2, 9), 3)) == 1 and trend(smaller(-TIME, -9)) == -1
    assert trend(abs(TIME - 5)) == 0 and trend(smaller(TIME, 9 - TIME)) == 0


def test_sums_are_factors_in_parentheses():
    assert [as_factor(x) for x in (3, 2 * TIME, TIME + 1)] == ["3", "2*time", "(time + 1)"]
