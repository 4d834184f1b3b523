"""Bounds of sizes and what they prove: never less than any value, and tight where programs need it."""

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

from graphc.base.sizes import size_bounds
from graphc.base.sizes.named_dims import Dim, dimensions
from graphc.base.sizes.size import always, at, is_size, positive_part
from graphc.base.sizes.size_bounds import bounds_of, greatest, never_positive
from graphc.base.sizes.size_terms import constant, terms_of

N, M = Dim("n", 1, 19, hint=16), Dim("m", 0, 6, hint=3)
ALL = [
    dict(zip(dimensions([N, M]).values(), values, strict=True)) for values in itertools.product(range(1, 20), range(7))
]


def _random(generator: random.Random, depth: int):
    if not depth:
        return generator.choice([N, M, generator.randint(0, 5)])
    a, b, number = _random(generator, depth - 1), _random(generator, depth - 1), generator.randint(1, 5)
    return {"+": a + b, "-": a - b, "*": a * b, "/": a // number, "%": a % number}[generator.choice("+-*/%")]


@pytest.mark.parametrize("seed", range(200))
def test_no_size_exceeds_its_bounds_and_what_is_proven_holds(seed):
    generator = random.Random(seed)
    size = _random(generator, generator.randint(1, 3)) - generator.randint(0, 30)
    values = [at(size, v) for v in ALL]
    low, high = bounds_of(terms_of(size))
    assert low <= min(values) and max(values) <= high
    assert high <= greatest(terms_of(size), True)
    if never_positive(terms_of(size)):
        assert max(values) <= 0
    if is_size(size) and high <= 0:
        assert never_positive(terms_of(size))


def test_numbers():
    assert bounds_of(()) == (0, 0) and bounds_of(constant(-3)) == (-3, -3)
    assert never_positive(()) and never_positive(constant(-1)) and not never_positive(constant(1))


@pytest.mark.parametrize(
    ("size", "high"),
    [
        (N - N // 4 * 4, 3),
        (N // 4 * 4 - N // 8 * 8, 4),
        ((N + 15) // 16 * 16 - N, 15),
        (M * N - M * (N // 16) * 16, 6 * 15),
        (N // 8 % 2, 1),
    ],
)
def test_what_cancels_is_seen(size, high):
    assert greatest(terms_of(size)) == high


def test_what_is_proven_of_parts():
    assert never_positive(terms_of(M * (N // 4) * 4 - M * N))
    assert not never_positive(terms_of(M * N - M * (N // 4) * 4))


def test_terms_are_proven_apart_and_without_a_common_factor():
    batch, time = Dim("batch", 1, 64), Dim("time", 1, 512)
    rest = time - 7 + 6 * ((time + 7) // 8) - (3 * time) // 4
    assert always("<=", 0, rest)
    assert always("<=", 0, rest * batch) and not always("<=", 1, rest * batch)
    assert always("<=", 0, 48 * rest * batch + 32)
    assert always("<=", 0, rest * time + 8 * (time // 8)) and not always("<=", 1, rest * time + 8 * (time // 8))
    assert always("<=", 0, 4 * (batch // 4) * time + rest)
    vectors = time // 16 + 2 * (time // 96)
    assert always("<=", 0, vectors - 4 * (vectors // 4))


def test_products_of_sums_over_different_dimensions_are_proven_by_their_signs():
    """The last tile of five batches of squares did not fit its memory, as far as was proven."""
    batch, time = Dim("batch", 1, 64), Dim("time", 20, 512)
    missing, side = 5 * ((batch + 4) // 5) - batch, time // 20 - 1
    assert always("<=", 0, missing * side * side) and not always("<=", 1, missing * side * side)
    assert always("<=", 0, 4 * missing * (time * time - 2 * time + 1))
    assert always("<=", 0, missing * side) and not always("<=", 0, missing * (side - 1))
    assert not always("<=", 0, (batch - 3) * side * side)


SIZES = [Dim(f"d{i}", 0, 500, hint=20 + i) for i in range(9)]


def _side_by_side(number: int) -> Any:
    """Return a sum of clamped sizes."""
    return sum(positive_part(SIZES[i] - 7 * i - SIZES[i + 1]) * (SIZES[i + 2] + 1) for i in range(number))


def _nested(number: int) -> Any:
    """Return a size clamped again and again."""
    size = SIZES[0]
    for i in range(1, number + 1):
        size = positive_part(size - 2 * SIZES[i] + 1) * (SIZES[i + 2] + 1) + SIZES[i + 1]
    return size


def _evaluations(size: Any) -> int:
    """Return how many sums are bounded for the bounds of a size and for an attempt at a proof that fails."""
    for function in vars(size_bounds).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()
    bounds_of(terms_of(size))
    assert not never_positive(terms_of(size - 100_000))
    return greatest.cache_info().misses + never_positive.cache_info().misses


@pytest.mark.parametrize("build", [_side_by_side, _nested])
def test_the_work_for_clamped_sizes_does_not_double_with_each_of_them(build: Callable[[int], Any]):
    assert _evaluations(build(5)) < 2**2 * _evaluations(build(3))


def test_sums_with_many_clamped_sizes_take_less_work_than_those_whose_cases_are_distinguished():
    assert _evaluations(_side_by_side(6)) < _evaluations(_side_by_side(2))
