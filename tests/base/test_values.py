"""Keys of values: equal exactly where a traced program would be the same."""

from __future__ import annotations

import functools
from collections import OrderedDict, deque
from datetime import date
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphc as gc
from graphc.base.sizes.named_dims import Dim
from graphc.base.values import LARGEST, Same, is_immutable, key_of, unknown_part


class Point(NamedTuple):
    x: float


class Mode(Enum):
    A = 1
    B = 1.0


class Plain:
    pass


EQUAL = [
    (float("nan"), -float("nan") * -1),
    ([1, {"a": {1, 2}}], [1, {"a": {2, 1}}]),
    (Fraction(1, 2), Fraction(2, 4)),
    (Decimal("1.5"), Decimal("1.5")),
    (date(2020, 1, 1), date(2020, 1, 1)),
    (slice(1, 2.0), slice(1, 2.0)),
    (np.float32(1), np.float32(1)),
    (np.arange(3), np.arange(3)),
    (functools.partial(abs, a=[1]), functools.partial(abs, a=[1])),
    (bytearray(b"a"), bytearray(b"a")),
    (deque([1]), deque([1])),
]
DIFFERENT = [
    (0.0, -0.0),
    (1, True),
    (1, 1.0),
    (1.0, 1 + 0j),
    (complex(0.0, -0.0), 0j),
    ((1,), [1]),
    (Point(1.0), (1.0,)),
    ({1: 2}, {True: 2}),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({"a": 1}, OrderedDict(a=1)),
    (frozenset({1}), {1}),
    (np.float32(1), np.float64(1)),
    (np.arange(3), np.arange(3.0)),
    (np.arange(4), np.arange(4).reshape(2, 2)),
    (Fraction(1), 1),
    (Plain(), Plain()),
    (lambda: 1, lambda: 1),
    (gc.ones(1), gc.ones(1)),
]


@pytest.mark.parametrize(("a", "b"), EQUAL)
def test_equal_values(a: Any, b: Any):
    assert key_of(a) == key_of(b) and hash(key_of(a)) == hash(key_of(b))


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_different_values(a: Any, b: Any):
    assert key_of(a) != key_of(b) and key_of(a) == key_of(a) and key_of(b) == key_of(b)


def test_a_key_does_not_follow_its_value():
    items = [1, [2]]
    before = key_of(items)
    items[1].append(3)  # type: ignore[union-attr]
    assert key_of(items) != before


def test_large_and_endless_containers_are_known_by_identity():
    large = list(range(LARGEST + 1))
    assert key_of(large) == key_of(large) != key_of(large.copy())
    endless: list[Any] = []
    endless.append(endless)
    assert key_of(endless) == key_of(endless)


def test_what_has_neither_value_nor_name():
    plain = Plain()
    for value in (plain, [plain], {"a": (1, {plain})}):
        assert unknown_part(key_of(value)) is plain
    for value in (abs, len, Plain, np, Mode.A, gc.float32, lambda: 1, gc.Generator(), 1, [None, "a"], "".join):
        assert unknown_part(key_of(value)) is None
    assert Same(1) != 1


def test_immutable_values():
    assert all(map(is_immutable, (1, 1.0, "a", None, True, Mode.A, np.float32(1))))
    assert not any(map(is_immutable, ([], (), Plain(), np.ones(1))))


def test_sizes_are_known_by_the_ranges_of_their_dimensions_too():
    short, long = Dim("n", 1, 8), Dim("n", 1, 9)
    assert key_of(short) == key_of(Dim("n", 1, 8)) and key_of(short) != key_of(long)
    assert key_of(short * 0.5) == key_of(Dim("n", 1, 8) * 0.5) != key_of(long * 0.5)
    assert key_of((1, short / 3)) != key_of((1, long / 3)) and key_of(short * 0.5) != key_of(short / 0.5)
