"""Residues of dimensions: comparisons of sizes proven once remainders are known."""

from __future__ import annotations

import pytest

from graphc.base.sizes.named_dims import Dim, dimensions
from graphc.base.sizes.size import at
from graphc.base.sizes.size_residues import Residue, decided, residue_of, residues_that_decide, under

H, W = Dim("h", 1, 4096, hint=64), Dim("w", 1, 4096, hint=96)
(HEIGHT, WIDTH) = dimensions([H, W]).values()


def halved(size, times):
    for _ in range(times):
        size = (size + 1) // 2
    return size


@pytest.mark.parametrize("remainder", [0, 1, 17, 31])
def test_quotients_vanish_where_remainders_are_known(remainder: int):
    size = under({HEIGHT: Residue(32, remainder)}, halved(H, 5))
    assert "//" not in str(size)
    (quotient,) = dimensions([size]).values()
    for height in range(remainder or 32, 4097, 32 * 11):
        assert at(size, {quotient: height // 32}) == at(halved(H, 5), {HEIGHT: height})
    assert (quotient.low, quotient.high) == (0 if remainder else 1, (4096 - remainder) // 32)


def test_equal_sizes_of_a_pyramid_are_proven_by_the_remainder_of_one_dimension():
    difference = halved(H, 4) - 2 * halved(H, 5)
    assert residues_that_decide("==", difference, True, None, {}) == {HEIGHT: Residue(32, 0)}
    assert residues_that_decide("==", difference, True, {HEIGHT: 63}, {}) == {HEIGHT: Residue(32, 31)}
    assert residues_that_decide("==", difference, True, {HEIGHT: 65}, {}) is None


def test_few_dimensions_get_a_residue():
    difference = (H * W) // 3 * 3 - H * W
    assert residues_that_decide("==", difference, True, {HEIGHT: 4, WIDTH: 6}, {}) == {WIDTH: Residue(3, 0)}
    assert residues_that_decide("==", (H * W) // 6 * 6 - H * W, True, {HEIGHT: 9, WIDTH: 4}, {}) == {
        HEIGHT: Residue(6, 3),
        WIDTH: Residue(6, 4),
    }


def test_known_residues_are_refined():
    known = {HEIGHT: Residue(4, 1)}
    assert residues_that_decide("==", H // 6 * 6 + 3 - H, True, {HEIGHT: 21}, known) == {HEIGHT: Residue(12, 9)}


def test_classes_of_few_sizes_prove_nothing():
    assert residues_that_decide("==", H // 2000 * 2000 + 64 - H, True, None, {}) is None


def test_orders_are_decided_by_ranges():
    assert decided("<=", H - 1) is True and decided("<=", -H) is False and decided("<=", H - 2) is None
    assert decided("==", H) is False and decided("==", H - 1) is None
    assert residues_that_decide("<=", halved(H, 1) - 2 * halved(H, 2), True, None, {}) == {HEIGHT: Residue(4, 0)}


@pytest.mark.parametrize(
    ("difference", "residue"),
    [
        (H - H // 4 * 4, (HEIGHT, Residue(4, 0))),
        (H // 4 * 12 - 3 * H + 9, (HEIGHT, Residue(4, 3))),
        (H - H // 4 * 4 - 4, None),
        (H - H // 4 * 2, None),
        (H - W // 4 * 4, None),
        (H // W * W - H, None),
        (2 * H - H // 4 * 8 - 1, None),
        (H - 3, None),
    ],
)
def test_an_equation_may_give_a_remainder(difference, residue):
    assert residue_of(difference) == residue
