"""Ranges of dimensions under assumptions."""

from __future__ import annotations

import random

import pytest

from graphc.base.errors import CompileError
from graphc.base.sizes.assumptions import Assumptions, assuming
from graphc.base.sizes.named_dims import Dim, dimensions, size_of
from graphc.base.sizes.size import UndecidedSize, at, bounds
from graphc.base.sizes.size_limits import answered, in_terms_of, limits

N, M = Dim("n", 1, 512, hint=32, common=(8, 300)), Dim("m", 2, 64, hint=32)
KNOWN = dimensions([N, M])


def assumed(ask) -> dict:
    with assuming(Assumptions()) as assumptions:
        ask()
    return limits(assumptions.found.values(), KNOWN)


@pytest.mark.parametrize(
    ("ask", "text", "ranges"),
    [
        (lambda: N <= 128, {"n": "n"}, {"n": (1, 128)}),
        (lambda: N * 3 + 1 > 20, {"n": "n"}, {"n": (7, 512)}),
        (lambda: N > 40, {"n": "n"}, {"n": (1, 40)}),
        (lambda: N // 4 >= 2, {"n": "n"}, {"n": (8, 512)}),
        (lambda: 100 - N // 4 >= N // 8, {"n": "n"}, {"n": (1, 271)}),
        (lambda: N == 32, {"n": "32"}, {}),
        (lambda: N == 1, {"n": "n"}, {"n": (2, 512)}),
        (lambda: N == 5, {}, {}),
        (lambda: 2 * N == 64, {"n": "32"}, {}),
        (lambda: N == M, {"m": "m"}, {"m": (2, 64)}),
        (lambda: N == 2 * M - 32, {"n": "2*m - 32", "m": "m"}, {"m": (17, 64)}),
        (lambda: N // 4 == 8, {"n": "n"}, {"n": (32, 35)}),
        (lambda: 1 - N // 33 == 1, {"n": "n"}, {"n": (1, 32)}),
        (lambda: N == N // 4 * 4, {"n": "4*n_4_"}, {"n_4_": (1, 128)}),
        (lambda: N % 5 == 2, {"n": "5*n_5_ + 2"}, {"n_5_": (0, 102)}),
        (lambda: N % 5 == 2 and N % 10 == 2, {"n": "10*n_5__2 + 2"}, {"n_5__2": (0, 51)}),
        (lambda: N % 16 == 0 and N <= 100, {"n": "16*n_16_"}, {"n_16_": (1, 6)}),
        (lambda: N * M == 32 * N, {"m": "32"}, {}),
        (lambda: N * M * M <= 100 * M * M, {"n": "n"}, {"n": (1, 100)}),
        (lambda: N <= M, {}, {}),
        (lambda: N * M <= 5000, {}, {}),
    ],
)
def test_assumptions_are_limits(ask, text, ranges):
    found = assumed(ask)
    if text == {"m": "m"}:
        assert {str(size) for size in found.values()} <= {"m", "n"} and len(dimensions(found.values())) == 1
        return
    assert {name: str(size) for name, size in found.items()} == text
    assert {name: (d.low, d.high) for name, d in dimensions(found.values()).items()} == ranges


def test_common_sizes_that_are_left_are_kept():
    (n,) = dimensions(assumed(lambda: N <= 128).values()).values()
    assert (n.hint, n.common) == (32, (8,))


def _random_question(generator: random.Random):
    a = generator.choice([N, M, N + M, 2 * N - 5, N // 3, M * generator.randint(1, 3), N - M // 2])
    b = generator.choice([M, 3, 7, 64, N // 4 * 4, 100, M + 3])
    return (lambda: a == b) if generator.random() < 0.4 else (lambda: a <= b)


@pytest.mark.parametrize("seed", range(200))
def test_sizes_for_which_assumptions_hold_stay_possible(seed):
    generator = random.Random(seed)
    questions = [_random_question(generator) for _ in range(generator.randint(1, 3))]
    n, m = KNOWN["n"], KNOWN["m"]
    with assuming(Assumptions({n: generator.randint(1, 512), m: generator.randint(2, 64)})) as assumptions:
        for question in questions:
            question()
    found = limits(assumptions.found.values(), KNOWN)
    free = list(dimensions([found.get("n", N), found.get("m", M)]).values())
    for values in ({n: i, m: j} for i in (*range(1, 80), 255, 256, 512) for j in range(2, 65)):
        if assumptions.broken(values) is None:
            low_high = {name: bounds(size) for name, size in found.items()}
            for name, (low, high) in low_high.items():
                assert low <= values[KNOWN[name]] <= high
    for _ in range(20):
        chosen = {d: generator.randint(d.low, d.high) for d in free}
        for name, size in found.items():
            assert KNOWN[name].low <= at(size, chosen) <= KNOWN[name].high


def test_what_is_left_of_assumptions_is_said_of_the_narrower_dimensions():
    with assuming(Assumptions()) as assumptions:
        assert N <= 128 and N >= M and M > 3
    narrower = dimensions([Dim("n", 1, 128, hint=32), Dim("m", 4, 64, hint=32)])
    (left,) = in_terms_of(assumptions.found.values(), narrower)
    assert str(left).startswith("m <= n") and set(dimensions([left.a, left.b]).values()) == set(narrower.values())


def test_a_question_of_a_later_stage_is_answered_for_the_dimensions_of_the_trace():
    sizes = {KNOWN["n"]: 12, KNOWN["m"]: 40}
    with assuming(Assumptions(sizes)) as assumptions:
        assert N % 4 == 0
    quarter = dimensions([limits(assumptions.found.values(), KNOWN)["n"]])["n_4_"]
    error = CompileError("pass decompose failed")
    assert not answered(error, assumptions, KNOWN)
    error.__cause__ = UndecidedSize.of("<=", size_of(quarter) + 1, 3)
    assert not answered(error, assumptions, {"m": KNOWN["m"]})
    error.__cause__ = UndecidedSize.of("<=", size_of(quarter) + 1, M)
    assert answered(error, assumptions, KNOWN) and not answered(error, assumptions, KNOWN)
    assert [str(a).partition(" (asked")[0] for a in assumptions.found.values()] == [
        "n == 4*(n // 4)",
        "(n // 4) + 1 <= m",
    ]


def test_assumptions_about_dimensions_that_were_replaced_are_restated():
    """They were left out, so that keys of code did not contain them."""
    rows, columns, time = Dim("rows", 1, 64), Dim("columns", 1, 64), Dim("time", 1, 64)
    dims = dimensions([rows, columns, time])
    with assuming(Assumptions({dims["rows"]: 5, dims["columns"]: 5, dims["time"]: 9})) as assumptions:
        assert rows == columns and time % 4 == 1 and columns * rows * (time // 4) < 60
    present = dimensions(limits(assumptions.found.values(), dims).values())
    restated = in_terms_of(assumptions.found.values(), present)
    assert len(present) == 2 and len(restated) == 1, "one for all three, and none that holds by itself"


@pytest.mark.parametrize("name", ["a", "z"])
def test_the_dimension_that_is_a_sum_of_others_is_replaced(name: str):
    """``total == past + new``: not ``new = total - past``, which may be negative as far as bounds tell."""
    total, past, new = Dim(name, min=0, hint=7), Dim("past", min=0, hint=3), Dim("new", min=0, hint=4)
    with assuming(Assumptions()) as assumptions:
        assert total == past + new
    found = limits(assumptions.found.values(), dimensions([total, past, new]))
    assert bounds(found[name])[0] == 0 and set(dimensions([found[name]])) == {"past", "new"}


@pytest.mark.parametrize("ask", [lambda a, b: a * b == 0, lambda a, b: 4 * a * b - 1 >= 0, lambda a, b: a * b > 0])
def test_no_factor_of_a_size_that_is_not_zero_is_zero(ask):
    a, b = Dim("a", min=0, hint=2), Dim("b", min=0, hint=3)
    with assuming(Assumptions()) as assumptions:
        ask(a, b)
    found = limits(assumptions.found.values(), dimensions([a, b]))
    assert {name: bounds(size)[0] for name, size in found.items()} == {"a": 1, "b": 1}
