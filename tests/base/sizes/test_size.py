"""Sizes: their normal form, what is proven of them, and what a trace assumes."""

import copy
import math
import pickle
import random

import pytest

from graphc.base.sizes.assumptions import Assumptions, assuming
from graphc.base.sizes.named_dims import Dim, dimensions
from graphc.base.sizes.size import (
    UndecidedSize,
    always,
    at,
    bounds,
    hint,
    is_one,
    is_size,
    larger,
    positive_part,
    smaller,
)

BATCH, TIME, SIDE = Dim("batch", 1, 64), Dim("time", 1, 512, hint=128), Dim("side", 16, 600, hint=64)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (BATCH * TIME * 384, "384*batch*time"),
        (TIME * BATCH * 384 // 384, "batch*time"),
        (BATCH * TIME * 384 // (TIME * 384), "batch"),
        ((TIME * 384 - 1) // (TIME * 384), "0"),
        ((SIDE + 2 - 3) // 2 + 1, "((side + 1) // 2)"),
        ((TIME * 4 + 3) // 4, "time"),
        (1024 * (TIME // 256) // (TIME // 256), "1024"),
        (TIME // 16 * 16 + TIME % 16, "time"),
        (TIME // 4 // 4, "(time // 16)"),
        ((6 * TIME + 3) // 4, "((time + 1) // 2) + time"),
        (TIME - TIME + 3, "3"),
        (3 - TIME * BATCH, "-batch*time + 3"),
        ((TIME + 1) * (TIME - 1), "time*time - 1"),
        (smaller(TIME, 5), "time - max(time - 5, 0)"),
        (smaller(smaller(TIME, 5), 3), "time - max(time - 3, 0)"),
        (larger(smaller(TIME, 5), 3), "max(time - 3, 0) - max(time - 5, 0) + 3"),
        (smaller(TIME, BATCH) + larger(BATCH, TIME), "batch + time"),
        (larger(TIME, BATCH) - larger(BATCH, TIME), "0"),
        (positive_part(2 * TIME - 5), "max(time - 2, 0) + max(time - 3, 0)"),
        (larger(BATCH * TIME, 3 * TIME), "time*max(batch - 3, 0) + 3*time"),
        (smaller(TIME, 600), "time"),
        (larger(BATCH - 64, 0), "0"),
        (abs(BATCH - 2 * BATCH), "batch"),
    ],
)
def test_equal_sizes_have_one_form(size, text):
    assert str(size) == text


def test_what_is_constant_is_an_int():
    assert type(TIME - TIME + 3) is int and type(TIME * 0) is int and type(Dim("fixed", 7, 7)) is int
    assert is_size(TIME) and not is_size(7) and isinstance(TIME, int)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (BATCH * TIME - TIME, (0, 63 * 512)),
        (512 - TIME, (0, 511)),
        (TIME % 16, (0, 15)),
        (TIME - TIME // 16 * 16, (0, 15)),
        (TIME // 4 % 2, (0, 1)),
        (TIME - TIME // 29 * 29 - TIME % 29 // 16 * 16, (0, 15)),
        ((TIME + 15) // 16 * 48 - TIME // 16 * 48 + 5, (5, 53)),
        (TIME // 8 * 8 - TIME // 16 * 16, (0, 8)),
        (TIME // 4 * 4 - TIME // 8 * 8 + TIME // 8 * 8 - TIME // 16 * 16, (0, 12)),
        ((TIME + 47) // 48 - TIME // 48, (0, 1)),
        (16 * ((TIME + 15) // 16) - 48 * (TIME // 48), (0, 48)),
        ((TIME % 14) // 2 % 2, (0, 1)),
        (BATCH // 2 * 2 * TIME - BATCH * TIME + (TIME + 15) // 16 * 16 - TIME // 16 * 16, (-512, 16)),
        ((SIDE + 2 - 3) // 2 + 1, (8, 300)),
        (TIME * BATCH * 384 - 1 - (BATCH - 1) * TIME * 384, (383, 196607)),
        (TIME // 16 - TIME // 64 * 4, (0, 3)),
        ((TIME + 15) // 16 - TIME // 16, (0, 1)),
        (TIME // 4 % 2, (0, 1)),
        (TIME - TIME // 29 * 29 - TIME % 29 // 16 * 16, (0, 15)),
        ((TIME + 15) // 16 * 48 - TIME // 16 * 48 + 5, (5, 53)),
        (TIME // 8 * 8 - TIME // 16 * 16, (0, 8)),
        (TIME // 4 * 4 - TIME // 8 * 8 + TIME // 8 * 8 - TIME // 16 * 16, (0, 12)),
        (TIME * BATCH - TIME // 16 * 16 * BATCH, (0, 960)),
        ((TIME - TIME // 16 * 16) // 8 * 8 - TIME % 16, (-7, 0)),
    ],
)
def test_bounds(size, expected):
    assert bounds(size) == expected


def _random_size(generator: random.Random, leaves, depth: int):
    if not depth:
        return generator.choice([*leaves, generator.randint(0, 7)])
    a, b = _random_size(generator, leaves, depth - 1), _random_size(generator, leaves, depth - 1)
    kind, number = generator.choice("+-*/%"), generator.randint(1, 9)
    return {"+": a + b, "-": a - b, "*": a * b, "/": a // number, "%": a % number}[kind]


@pytest.mark.parametrize("seed", range(300))
def test_random_expressions_are_what_they_are_of_numbers_and_within_their_bounds(seed):
    depth = 1 + seed % 3
    size = _random_size(random.Random(seed), [BATCH, TIME, SIDE], depth)
    low, high = bounds(size)
    atoms = list(dimensions([BATCH, TIME, SIDE]).values())
    generator = random.Random(-seed)
    for _ in range(10):
        values = {a: generator.choice([a.low, a.high, generator.randint(a.low, a.high)]) for a in atoms}
        expected = _random_size(random.Random(seed), [values[a] for a in atoms], depth)
        assert at(size, values) == expected
        assert low <= expected <= high


def test_questions_that_ranges_decide():
    assert TIME <= 512 and TIME > 0 and TIME < BATCH * 512 + 1 and bool(TIME)
    assert always("<=", TIME, 512) and not always("<=", TIME, 511) and not always("==", TIME, BATCH)
    assert TIME != 0 and TIME * BATCH == BATCH * TIME and TIME != BATCH and not is_one(TIME)


@pytest.mark.parametrize("ask", [lambda: TIME < 100, lambda: TIME >= BATCH, lambda: int(TIME), lambda: range(TIME)])
def test_what_depends_on_a_call_raises(ask):
    with pytest.raises(UndecidedSize):
        ask()


def test_numbers_made_of_sizes():
    number = 2.0 / (TIME + 1) - 1
    assert number.at({dimensions([TIME])["time"]: 3}) == -0.5 and isinstance(number, float)


def test_parts_that_cancel_for_themselves_are_proven():
    panels = BATCH * (SIDE - 2) // 32
    assert always("<=", 0, panels // 75 * 75 * 32 + BATCH)
    assert not always("<=", 1, panels // 75 * 75 * 32)


def test_sizes_are_values():
    size = BATCH * TIME + TIME // 3
    assert pickle.loads(pickle.dumps(size)) == size and copy.deepcopy(size) is size
    assert {size: 1}[TIME // 3 + TIME * BATCH] == 1 and hint(size) == 32 * 128 + 42


def test_products_with_quotients_are_bounded_together():
    half = SIDE // 2
    assert always("<=", (TIME + 1) * half * 2 - 4 * half, (TIME - 1) * SIDE)
    assert always("<=", (TIME - 1) * (SIDE - 1), (TIME - 1) * half * 2)


def test_comparing_quotients_asks_nothing_of_their_operands():
    n, m, other = Dim("n", 1, 64), Dim("m", 1, 64), Dim("n", 1, 63)
    with assuming(Assumptions()) as assumptions:
        assert n // 2 == m // 2
        assert n // 7 + n // 3 in {n // 3 + n // 7} and (n // 7).terms != (other // 7).terms
    assert len(assumptions.found) == 1


def test_divisors_that_are_negative_numbers():
    n = Dim("n", 0, 9)
    for value in range(10):
        for divisor in (-1, -2, -3):
            found = (n - 1) // divisor, (n - 1) % divisor
            assert tuple(at(x, {dimensions([n])["n"]: value}) for x in found) == divmod(value - 1, divisor)


def test_a_trace_asks_whether_a_divisor_is_negative():
    n, m = Dim("n", 0, 9), Dim("m", 0, 9)
    a, b = dimensions([n, m]).values()
    calls = [{a: x, b: y} for x in range(10) for y in range(10) if y != 4]
    for first in calls:
        with assuming(Assumptions(first)) as assumptions:
            found = n // (m - 4), n % (m - 4), 9 // (m - 4)
        assert assumptions.broken(first) is None and len(assumptions.found) <= 2
        for values in calls:
            x, y = values[a], values[b] - 4
            if assumptions.broken(values) is None:
                assert [at(size, values) for size in found] == [x // y, x % y, 9 // y]
                assert all(bounds(size)[0] <= at(size, values) <= bounds(size)[1] for size in found)


@pytest.mark.parametrize("function", [math.floor, math.ceil, math.trunc])
@pytest.mark.parametrize(
    "number",
    [lambda n: n / 2, lambda n: n / 3, lambda n: n * 0.75 - 20.5, lambda n: (n - 7.0) / 3, lambda n: 100 / n],
)
def test_whole_numbers_near_a_fraction_are_sizes(function, number):
    with assuming(Assumptions()) as assumptions:
        whole = function(number(BATCH))
    assert is_size(whole)
    (dimension,) = dimensions([BATCH]).values()
    for value in range(1, 65):
        if assumptions.broken({dimension: value}) is None:
            assert at(whole, {dimension: value}) == function(number(value))


def test_fractions_that_floats_round_twice_need_the_number_of_a_call():
    for number in (BATCH / 49 * 49, BATCH * 0.1, BATCH**0.5):
        with pytest.raises(UndecidedSize):
            math.floor(number)


def test_fractions_are_compared_without_their_number():
    assert BATCH / 2 >= 0.5 and BATCH * 0.5 < 32.5 and not BATCH - 0.5 <= 0 and 2.0 * BATCH > 1.0
    with assuming(Assumptions()) as assumptions:
        assert BATCH * 0.5 < 20
    assert [str(a).partition(" (")[0] for a in assumptions.found.values()] == ["0 > batch - 40"]


def test_a_quotient_with_one_value_is_a_number():
    rows = Dim("rows", 48, 95)
    assert rows // 48 == 1 and type(rows // 48) is int
    assert (rows + 2 * SIDE * 96) // 96 == 2 * SIDE
    assert is_size(rows // 47)


@pytest.mark.parametrize("seed", range(60))
def test_minima_and_maxima_are_those_of_numbers(seed):
    n, m = Dim("n", 1, 12, hint=7), Dim("m", 0, 5, hint=3)
    generator = random.Random(seed)
    size = generator.choice([n, m, n // 2, n + m])
    steps = [
        (generator.choice([smaller, larger, lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * 2 - b]), other)
        for other in generator.choices([n, m, n // 2, (n + m) // 3, 2 * n, *range(-2, 9)], k=4)
    ]
    known = dimensions([n, m])
    at_all = [{known["n"]: i, known["m"]: j} for i in range(1, 13) for j in range(6)]
    numbers = [at(size, values) for values in at_all]
    for step, other in steps:
        size = step(size, other)
        numbers = [step(number, at(other, values)) for number, values in zip(numbers, at_all, strict=True)]
    assert [at(size, values) for values in at_all] == numbers
    low, high = bounds(size)
    assert low <= min(numbers) and max(numbers) <= high
