"""Coefficients of Runge-Kutta and Rosenbrock methods satisfy the order conditions of rooted trees."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from graphc.base.errors import ArgumentError
from graphc.integrate.tableaus import TABLEAUS, tableau_of

Tree = tuple
"""A rooted tree: its subtrees."""


@lru_cache
def trees(order):
    """Return all rooted trees with ``order`` nodes, each as a sorted tuple of subtrees."""
    if order == 1:
        return [()]
    forests = {0: [()]}
    for size in range(1, order):
        forests[size] = sorted(
            {tuple(sorted((*f, t))) for k in range(1, size + 1) for t in trees(k) for f in forests[size - k]}
        )
    return forests[order - 1]


def nodes(tree):
    return 1 + sum(map(nodes, tree))


def density(tree):
    return nodes(tree) * int(np.prod([density(t) for t in tree], dtype=np.int64))


def triangle(rows, size):
    """Return rows of any length as a matrix [size, size]."""
    return np.array([[*row, *(size - len(row)) * (0.0,)] for row in rows])


class Weights:
    """Coefficients of a method in terms of the rates of the stages.

    A Rosenbrock method is written here with stages ``u = gamma k``: Hairer and Wanner, equation IV.7.25.
    """

    def __init__(self, tableau):
        size = len(tableau.c)
        self.a = triangle(tableau.a, size)
        self.gamma = tableau.diagonal * np.diag([0.0, *(size - 1) * (1.0,)])
        self.transform = np.eye(size)
        if tableau.coupling:
            self.gamma = np.linalg.inv(np.eye(size) / tableau.diagonal - triangle(tableau.coupling, size))
            self.transform = self.gamma
            self.a = self.a @ self.gamma
        self.linear = self.a + self.gamma
        """Weights where the rate is differentiated once."""
        self.several = self.a if tableau.coupling else self.linear
        """Weights where it is differentiated by several arguments."""

    def row(self, weights):
        size = len(self.a)
        return np.array([*weights, *(size - len(weights)) * (0.0,)]) @ self.transform

    def elementary(self, tree):
        """Return the elementary weight of a tree for each stage."""
        result = np.ones(len(self.a))
        for t in tree:
            result = result * ((self.linear if len(tree) == 1 else self.several) @ self.elementary(t))
        return result

    def residual(self, weights, order, theta=1.0):
        """Return the largest error of the conditions of an order."""
        row = self.row(weights)
        return max(abs(row @ self.elementary(t) - theta**order / density(t)) for t in trees(order))


def test_the_number_of_trees_is_known():
    assert [len(trees(n)) for n in range(1, 7)] == [1, 1, 2, 4, 9, 20]


@pytest.mark.parametrize("method", TABLEAUS)
def test_a_method_has_its_order_and_no_higher_one(method):
    tableau = tableau_of(method)
    weights = Weights(tableau)
    for order in range(1, tableau.order + 1):
        assert weights.residual(tableau.b, order) < 1e-12
    assert weights.residual(tableau.b, tableau.order + 1) > 1e-6


@pytest.mark.parametrize("method", TABLEAUS)
def test_the_times_of_stages_are_the_sums_of_their_weights(method):
    tableau = tableau_of(method)
    weights = Weights(tableau)
    if tableau.coupling:
        np.testing.assert_allclose(weights.a.sum(1), tableau.c, atol=1e-13)
        np.testing.assert_allclose(weights.gamma.sum(1), tableau.by_time, atol=1e-12)
    else:
        np.testing.assert_allclose(weights.linear.sum(1), tableau.c, atol=1e-13)


@pytest.mark.parametrize("method", [name for name, tableau in TABLEAUS.items() if tableau.error])
def test_the_embedded_method_is_of_lower_order(method):
    tableau = tableau_of(method)
    for error, lower in ((tableau.error, 5 if method == "dop853" else tableau.order - 1), (tableau.coarse, 3)):
        if error:
            embedded = np.array(tableau.b) - np.array([*error, *(len(tableau.b) - len(error)) * (0.0,)])
            weights = Weights(tableau)
            for order in range(1, lower + 1):
                assert weights.residual(embedded, order) < 1e-12
            assert weights.residual(embedded, lower + 1) > 1e-5


@pytest.mark.parametrize("method", [name for name, tableau in TABLEAUS.items() if tableau.dense])
def test_an_interpolant_has_its_order_everywhere_and_ends_with_the_step(method):
    tableau = tableau_of(method)

    def row(theta):
        return [sum(x * theta ** (j + 1) for j, x in enumerate(row)) for row in tableau.dense]

    last = [*tableau.b, *(len(tableau.c) - len(tableau.b)) * (0.0,)]
    np.testing.assert_allclose(row(1.0), last, atol=1e-12)
    for theta in (0.2, 0.5, 0.9):
        for order in range(1, 8 if method == "dop853" else 5):
            assert Weights(tableau).residual(row(theta), order, theta) < 1e-12


@pytest.mark.parametrize("method", [name for name, tableau in TABLEAUS.items() if tableau.diagonal])
def test_an_implicit_method_damps_stiff_parts(method):
    tableau = tableau_of(method)
    weights = Weights(tableau)
    z = -1e8
    stages = np.linalg.solve(np.eye(len(weights.a)) - z * weights.linear, np.ones(len(weights.a)))
    growth = 1 + z * weights.row(tableau.b) @ stages
    assert abs(growth - (-1 if method == "trapezoid" else 0)) < 1e-4


def test_another_name_is_an_error_that_lists_the_methods():
    with pytest.raises(ArgumentError, match="no method 'rk5'"):
        tableau_of("rk5")
