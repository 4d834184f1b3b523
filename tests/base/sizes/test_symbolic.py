"""Symbolic numbers: they behave as the numbers they stand for, and what is asked of them is recorded."""

from __future__ import annotations

import copy
import math
import numbers
import operator
import pickle
import random
from typing import Any

import numpy as np
import pytest

from graphc.base.sizes.symbolic import NumberRecord, is_symbolic, plain, value
from graphc.base.values import key_of


def symbols(*given: Any) -> tuple[NumberRecord, list[Any]]:
    record = NumberRecord(given)
    return record, record.symbols


def same(a: Any, b: Any) -> bool:
    return key_of(plain(a)) == key_of(b)


BINARY = (operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow)
NUMBERS = (0.5, -0.0, 3, -2, 0, 1.5e300, math.inf, math.nan, 7, -0.25)


@pytest.mark.parametrize("function", BINARY)
def test_arithmetic_gives_what_python_gives_and_replays_it_for_other_numbers(function):
    for a in NUMBERS:
        for b in NUMBERS:
            record, (x, y) = symbols(a, b)
            try:
                expected = function(a, b)
            except (ArithmeticError, ValueError) as error:
                with pytest.raises(type(error)):
                    function(x, y)
                assert set(record.pinned) == {0, 1}, "a path on which an operation raises holds for these numbers only"
                continue
            found = function(x, y)
            assert same(found, expected)
            if type(expected) is complex:
                assert set(record.pinned) == {0, 1}
                continue
            for c, d in zip(NUMBERS, reversed(NUMBERS), strict=True):
                c, d = (type(a)(2) if type(a) is int else c * 1.0), (type(b)(3) if type(b) is int else d * 1.0)
                slots = record.replay((c, d))
                try:
                    again = function(c, d)
                except (ArithmeticError, ValueError):
                    assert slots is None
                    continue
                if type(again) is type(expected):
                    assert slots is not None and same(slots[found._slot], again)
                else:
                    assert slots is None, "the class of a result is part of the path"


def test_random_expressions_replay_to_the_bits_of_python():
    rng, replayed = random.Random(7), []

    def run(x: Any, y: Any, choices: list[int]) -> tuple[Any, list[bool]]:
        """Return the last of eight results, and for each of them whether it was replaced."""
        pool, replaced = [x, y, 0.5, 3], list[bool]()
        for c in choices:
            a, b = pool[c % len(pool)], pool[c // 7 % len(pool)]
            pool.append([operator.add, operator.sub, operator.mul][c % 3](a, b))
            replaced.append(bool(pool[-1] > 4))
            if replaced[-1]:
                pool[-1] = 1.0
        return pool[-1], replaced

    for _ in range(200):
        choices = [rng.randrange(1000) for _ in range(8)]
        record, (x, y) = symbols(rng.uniform(-2, 2), rng.randrange(-5, 5))
        result, branches = run(x, y, choices)
        for _ in range(5):
            c, d = rng.uniform(-2, 2), rng.randrange(-5, 5)
            slots, (expected, other_branches) = record.replay((c, d)), run(c, d, choices)
            assert (slots is not None) == (branches == other_branches)
            replayed.append(slots is not None)
            if slots is not None:
                assert same(slots[result._slot] if is_symbolic(result) else result, expected)
    assert 300 < sum(replayed) < 900, "both outcomes are common"


def test_isinstance_and_arithmetic_with_other_classes_go_as_for_the_number():
    _, (x, n) = symbols(0.5, 3)
    assert isinstance(x, float) and not isinstance(x, int) and isinstance(x, numbers.Real) and x.__class__ is float
    assert isinstance(n, int) and not isinstance(n, bool) and isinstance(n, numbers.Integral)
    assert x != "a" and (x == None) is False  # noqa: E711
    with pytest.raises(TypeError):
        x + "a"
    with pytest.raises(TypeError):
        range(x)
    with pytest.raises(AttributeError):
        operator.attrgetter("dtype")(x)
    assert n & 2 == 2 and ~n == -4 and n << 1 == 6 and True + n == 4 and divmod(7, n) == (2, 1)


PINS = {
    "float": float,
    "int": int,
    "math": math.exp,
    "hash": hash,
    "text": str,
    "format": lambda x: f"{x:.1f}",
    "percent": lambda x: "%.2f" % x,  # noqa: UP031
    "repr": repr,
    "array": np.asarray,
    "array of f32": lambda x: np.asarray(x, np.float32),
    "list of arrays": lambda x: np.array([1.0, x]),
    "ufunc": lambda x: np.multiply(np.float32(2), x),
    "numpy on the left": lambda x: np.float32(2) * x,
    "numpy on the right": lambda x: x * np.float32(2),
    "array on the left": lambda x: np.ones(2, np.float32) * x,
    "where": lambda x: np.where([True, False], np.zeros(2, np.float32), x),
    "key": lambda x: {0.5: 1}.get(x),
    "attribute": lambda x: x.is_integer(),
    "ratio": lambda x: x.as_integer_ratio(),
    "complex": lambda x: x * 1j,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
}


@pytest.mark.parametrize("use", PINS.values(), ids=PINS.keys())
def test_what_needs_the_value_gets_it_and_pins_it_with_the_line(use):
    record, (x,) = symbols(0.5)
    found, expected = use(x), use(0.5)
    assert type(found) is type(expected) and np.array_equal(found, expected)
    if isinstance(expected, np.ndarray | np.generic):
        assert found.dtype == expected.dtype
    assert "test_symbolic.py" in record.pinned[0]


def test_indices_and_shapes_pin_ints():
    for use in (range, operator.index, lambda n: [1] * n, lambda n: "abcdef"[n], np.zeros, np.arange):
        record, (n,) = symbols(3)
        assert len(np.atleast_1d(np.asarray(use(n)).astype(str))) == len(np.atleast_1d(np.asarray(use(3)).astype(str)))
        assert set(record.pinned) == {0}


def test_questions_are_answered_recorded_and_asked_again():
    record, (x, n) = symbols(0.5, 0)
    if x < 1 and not n and max(x, 0.1) is x and x in (0.25, 0.5):
        y = x * 2
    assert not record.pinned and record.asked.keys() == {0, 1}
    assert record.replay((0.5, 0))[y._slot] == 1.0
    assert record.replay((0.5, 1)) is None
    assert "truth(1) is True, and was False" in record.why((0.5, 1)) and "test_symbolic.py" in record.why((0.5, 1))
    assert record.replay((2.0, 0)) is None and record.replay((math.nan, 0)) is None


def test_rounding_stays_symbolic():
    record, (x,) = symbols(2.5)
    found = [round(x), round(x, 1), math.floor(x), math.ceil(x), math.trunc(x), abs(-x), +x]
    slots = record.replay((-3.7,))
    expected = [round(-3.7), round(-3.7, 1), math.floor(-3.7), math.ceil(-3.7), math.trunc(-3.7), abs(3.7), -3.7]
    assert all(same(slots[f._slot], e) for f, e in zip(found, expected, strict=True)) and not record.pinned


def test_an_operation_that_raises_for_other_numbers_does_not_replay():
    record, (x,) = symbols(2.0)
    1 / x
    assert record.replay((0.0,)) is None and "ZeroDivisionError" in record.why((0.0,))


def test_symbols_that_are_left_behind_are_plain_numbers():
    record, (x,) = symbols(0.5)
    record.close()
    assert type(x * 2) is float and float(x) == 0.5 and x < 1 and not record.pinned and not record.steps
    assert copy.deepcopy(x) is x and value([x, {"a": (x,)}]) == [0.5, {"a": (0.5,)}]
