"""Facts about sums over the parts of an axis."""

from __future__ import annotations

import itertools

import numpy as np

from graphc.ops.movement.parts import longest, part_sum, parts_of
from tests.ops.apply import gradients, run


def test_parts_cover_all_elements_and_swapping_the_counts_gives_the_transpose():
    for n, m in itertools.product(range(1, 9), repeat=2):
        holds = {(i, e) for i, (start, stop) in enumerate(parts_of(n, m)) for e in range(start, stop)}
        assert {e for _, e in holds} == set(range(n))
        assert holds == {(i, e) for e, (start, stop) in enumerate(parts_of(m, n)) for i in range(start, stop)}
        assert longest(n, m) == max(sum(i == part for i, _ in holds) for part in range(m))


def test_infinity_stays_in_its_parts():
    x = np.array([1.0, np.inf, 2.0, 3.0])
    np.testing.assert_array_equal(run(lambda v: part_sum(v, axis=0, count=5), x), [1, np.inf, np.inf, 5, 3])


def test_the_gradient_of_an_element_counts_its_parts():
    found = gradients(lambda v: part_sum(v, axis=0, count=3), np.ones(4))[0]
    np.testing.assert_array_equal(found, [1, 2, 2, 1])


def test_no_parts_and_no_elements_give_no_sums():
    assert run(lambda v: part_sum(v, axis=0, count=0), np.ones(4)).shape == (0,)
    np.testing.assert_array_equal(run(lambda v: part_sum(v, axis=0, count=2), np.ones((0, 3))), np.zeros((2, 3)))
