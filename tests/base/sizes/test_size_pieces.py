"""Piecewise linear functions of one atom: their values, extremes, slopes, positive parts and quotients."""

import random

import pytest

from graphc.base.sizes.named_dims import Dim
from graphc.base.sizes.size import larger, smaller, terms
from graphc.base.sizes.size_pieces import Pieces, pieces_of

N, M = Dim("n", 1, 40), Dim("m", 1, 9)


def test_clamped_sizes_are_pieces():
    pieces = pieces_of(terms(larger(smaller(N, 9), 3) * 2 + 1))
    assert pieces is not None and (pieces.constant, pieces.slope, pieces.turns) == (7, 0, ((3, 2), (9, -2)))
    assert [pieces.at(n) for n in (1, 3, 4, 9, 40)] == [7, 7, 9, 19, 19]
    assert pieces.segments(1, 40) == [(1, 3, 0), (3, 9, 2), (9, 40, 0)]
    assert pieces.segments(5, 8) == [(5, 8, 2)]
    assert pieces.ends(3, 9) == [3, 9]


@pytest.mark.parametrize("size", [N + M, N * N, N * M, smaller(N, M), 7, smaller(N, 4) + M, smaller(N, 4) * N])
def test_other_sizes_are_no_pieces(size):
    assert pieces_of(terms(size)) is None


@pytest.mark.parametrize("seed", range(50))
def test_positive_parts_are_exact(seed):
    generator = random.Random(seed)
    points = sorted(generator.sample(range(2, 20), 3))
    turns = tuple([(p, generator.choice([-3, -1, 1, 2])) for p in points])
    pieces = Pieces(terms(N)[0][0][0][0], generator.randint(-9, 9), generator.randint(-2, 2), turns)
    positive = pieces.positive(1, 20)
    assert [positive.at(n) for n in range(1, 21)] == [max(pieces.at(n), 0) for n in range(1, 21)]
    assert all(change for _, change in positive.turns) and positive.positive(1, 20) == positive


def test_quotients_are_exact():
    generator, exact = random.Random(0), 0
    for _ in range(400):
        turns = tuple([(p, generator.choice([-4, -1, 1, 3])) for p in sorted(generator.sample(range(2, 20), 3))])
        pieces = Pieces(terms(N)[0][0][0][0], generator.randint(-9, 9), generator.randint(-2, 2), turns)
        quotient = pieces.floor_quotient(4, 1, 20)
        is_exact = all(
            slope % 4 == 0 or len({pieces.at(n) // 4 for n in range(a, b + 1)}) < 3
            for a, b, slope in pieces.segments(1, 20)
        )
        assert (quotient is not None) == is_exact
        if quotient is not None:
            assert [quotient.at(n) for n in range(1, 21)] == [pieces.at(n) // 4 for n in range(1, 21)]
            exact += 1
    assert 20 < exact < 380


def test_the_rows_of_a_slice_of_a_clamped_size_are_pieces():
    rows = larger(N - 31, 0)
    assert str((smaller(rows, 1) + 3) // 4) == "max(n - 31, 0) - max(n - 32, 0)"
    assert str((larger(smaller(4 * N, 40), 8) + 3) // 4) == "-max(n - 10, 0) + max(n - 2, 0) + 2"
    assert "//" in str((rows + 3) // 4)
