"""Index arithmetic: every expression keeps its value through simplification, bounds hold, views cost nothing."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphc.base.sizes.named_dims import Dim
from graphc.ir.kernel.index import (
    Axis,
    Div,
    Dynamic,
    Index,
    Mod,
    as_index,
    atoms,
    axes_of,
    bounds,
    flatten,
    reshaped,
    substitute,
    total,
    unflatten,
)
from graphc.ir.types import row_major_strides
from tests.ir.random_kernels import indices

AXES = [Axis("a", 3), Axis("b", 4), Axis("c", 6)]
N, M = Dim("n"), Dim("m")
A0, B0, C0 = (as_index(a) for a in AXES)
PLACES = [dict(zip(AXES, p, strict=True)) for p in product(*(range(a.extent) for a in AXES))]


def value(index: Index, place: dict[Axis, int]) -> int:
    """The number that the expression stands for, without any simplification."""
    total = index.constant
    for atom, coefficient in index.terms:
        if isinstance(atom, Axis):
            total += coefficient * place[atom]
        elif isinstance(atom, Div):
            total += coefficient * (value(atom.operand, place) // atom.divisor)
        else:
            assert isinstance(atom, Mod)
            total += coefficient * (value(atom.operand, place) % atom.divisor)
    return total


@settings(max_examples=200, deadline=None)
@given(indices(AXES), indices(AXES), st.integers(-5, 5), st.integers(1, 7))
def test_operators_keep_the_value(x: Index, y: Index, factor: int, divisor: int):
    for place in PLACES[::5]:
        a, b = value(x, place), value(y, place)
        assert value(x + y, place) == a + b
        assert value(x - y, place) == a - b
        assert value(3 - x, place) == 3 - a
        assert value(-x * factor, place) == -a * factor
        assert value(x // divisor, place) == a // divisor
        assert value(x % divisor, place) == a % divisor


@settings(max_examples=200, deadline=None)
@given(indices(AXES))
def test_bounds_hold(x: Index):
    low, high = bounds(x)
    assert all(low <= value(x, p) <= high for p in PLACES)


@settings(max_examples=100, deadline=None)
@given(indices(AXES), indices(AXES))
def test_equal_sums_are_equal(x: Index, y: Index):
    assert x + y == y + x
    assert x - x == Index()


@settings(max_examples=100, deadline=None)
@given(indices(AXES), indices(AXES[1:]))
def test_substitution_keeps_the_value(x: Index, y: Index):
    replaced = substitute(x, lambda atom: y if atom == AXES[0] else None)
    for place in PLACES[::7]:
        assert value(replaced, place) == value(x, {**place, AXES[0]: value(y, place)})


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (Index(), "0"),
        (6 * A0 + B0 - 1, "6*a + b - 1"),
        (-A0, "-1*a"),
        ((6 * A0 + C0) // 6, "a"),
        ((6 * A0 + C0) % 6, "c"),
        ((24 * A0 + 6 * B0 + C0) // 6 % 4, "b"),
        ((12 * A0 + C0) // 6, "2*a"),
        (C0 // 2 * 2 + C0 % 2, "c"),
        (C0 // 2 // 2, "(c // 4)"),
        ((2 * B0) // 4, "(b // 2)"),
        (C0 % 4 % 2, "(c % 2)"),
        ((A0 + C0) // 4, "((a + c) // 4)"),
        ((C0 + 1) % 6, "((c + 1) % 6)"),
        ((C0 - 6) // 6, "-1"),
        (A0 // 3, "0"),
        (Index(((Dynamic("n", -1, 5), 2),)), "2*[n:-1..5]"),
    ],
)
def test_simplest_form(index: Index, text: str):
    assert str(index) == text


@pytest.mark.parametrize("shape", [(24,), (4, 6), (2, 3, 4), (1, 24, 1), (2, 1, 12)])
def test_reshape_costs_nothing_when_axes_split_or_join(shape: tuple[int, ...]):
    """The offset of a reshaped array's element, taken back, is one term per axis."""
    axes = [as_index(Axis(f"i{k}", n)) for k, n in enumerate(shape)]
    offset = flatten(axes, row_major_strides(shape))
    assert unflatten(offset, shape) == tuple(axes)
    split = unflatten(offset, (4, 6))
    assert flatten(split, (6, 1)) == offset
    for place in product(*map(range, shape)):
        at = {f"i{k}": p for k, p in enumerate(place)}
        result = tuple(substitute(i, lambda axis, at=at: at[axis.name]).constant for i in split)
        assert result == np.unravel_index(np.ravel_multi_index(place, shape), (4, 6))


def test_axes_of_one_iteration_vanish():
    assert as_index(Axis("i", 1)) == Index()


def test_atoms_are_found_inside():
    n = Dynamic("n", 0, 5)
    index = (A0 + Index(((n, 1),))) // 4 + C0
    assert set(atoms(index)) == {AXES[0], AXES[2], n}
    assert axes_of(index) == {AXES[0], AXES[2]}


def test_coefficient():
    assert (6 * A0 + B0 // 2).coefficient(AXES[0]) == 6
    assert (6 * A0 + B0 // 2).coefficient(AXES[1]) == 0
    assert as_index(3).is_constant and not A0.is_constant


def test_a_total_is_the_sum_of_its_parts():
    a, b, t = Axis("a", 4), Axis("b", 6), Axis("t", 24)
    plain = [as_index(a) * 6, as_index(b), as_index(a) * -6 + 5]
    joined = [as_index(t) % 6, as_index(t) // 6 * 6, as_index(a)]
    for parts in (plain, joined, plain + joined, [], [as_index(3)]):
        expected = as_index(7)
        for part in parts:
            expected = expected + part
        assert total(parts, 7) == expected
    assert total(joined) == as_index(t) + as_index(a)


@pytest.mark.parametrize("shape", [(2, 6, 20), (4, 3, 20), (2, 1, 6, 4, 5, 1), (12, 20), (240,), (2, 3, 2, 20)])
@pytest.mark.parametrize("source", [(12, 4, 5), (1, 2, 6, 20), (240, 1), (3, 80)])
def test_reshaped_agrees_with_numpy(shape: tuple[int, ...], source: tuple[int, ...]):
    axes = [as_index(Axis(f"i{i}", n)) for i, n in enumerate(shape)]
    index = reshaped(axes, shape, source)
    for offset in range(0, 240, 7):
        at = {f"i{i}": int(n) for i, n in enumerate(np.unravel_index(offset, shape))}
        place = [substitute(i, lambda axis, at=at: at[axis.name]).constant for i in index]
        assert place == list(np.unravel_index(offset, source))


def test_dimensions_that_a_reshape_keeps_do_not_mix():
    b, c = (as_index(Axis(name, n)) for name, n in (("b", N), ("c", 8 * M + 2)))
    assert [str(i) for i in reshaped((b, c - 1), (N, 8 * M), (N, M, 8))] == ["b", "((c + 7) // 8) - 1", "((c + 7) % 8)"]
    assert reshaped((), (), (1, 1)) == (as_index(0), as_index(0))
