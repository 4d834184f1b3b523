"""Coefficients of Runge-Kutta methods satisfy the order conditions of rooted trees."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.errors import ArgumentError
from graphc.integrate.tableaus import TABLEAUS, tableau_of

Tree = tuple
"""A rooted tree: its subtrees."""


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


def matrix(tableau):
    a = np.zeros((len(tableau.c), len(tableau.c)))
    for i, row in enumerate(tableau.a):
        a[i, : len(row)] = row
        a[i, i] += tableau.diagonal if i and tableau.diagonal else 0
    return a


def elementary(tree, a):
    """Return the elementary weight of a tree for each stage."""
    result = np.ones(len(a))
    for t in tree:
        result = result * (a @ elementary(t, a))
    return result


def residual(weights, tree, a, theta=1.0):
    return abs(weights @ elementary(tree, a) - theta ** nodes(tree) / density(tree))


def test_the_number_of_trees_is_known():
    assert [len(trees(n)) for n in range(1, 7)] == [1, 1, 2, 4, 9, 20]


@pytest.mark.parametrize("method", TABLEAUS)
def test_a_method_has_its_order_and_no_higher_one(method):
    tableau = tableau_of(method)
    a, b = matrix(tableau), np.array(tableau.b)
    np.testing.assert_allclose(a.sum(1), tableau.c, atol=1e-13)
    for order in range(1, tableau.order + 1):
        assert max(residual(b, t, a) for t in trees(order)) < 1e-12
    assert max(residual(b, t, a) for t in trees(tableau.order + 1)) > 1e-5


@pytest.mark.parametrize("method", [name for name, tableau in TABLEAUS.items() if tableau.error])
def test_the_embedded_method_is_one_order_lower(method):
    tableau = tableau_of(method)
    a, embedded = matrix(tableau), np.array(tableau.b) - np.array(tableau.error)
    for order in range(1, tableau.order):
        assert max(residual(embedded, t, a) for t in trees(order)) < 1e-12
    assert max(residual(embedded, t, a) for t in trees(tableau.order)) > 1e-5


@pytest.mark.parametrize("method", [name for name, tableau in TABLEAUS.items() if tableau.dense])
def test_an_interpolant_has_order_four_everywhere_and_ends_with_the_step(method):
    tableau = tableau_of(method)
    a = matrix(tableau)

    def weights(theta):
        return np.array([sum(x * theta ** (j + 1) for j, x in enumerate(row)) for row in tableau.dense])

    np.testing.assert_allclose(weights(1.0), tableau.b, atol=1e-13)
    for theta in (0.2, 0.5, 0.9):
        for order in range(1, 5):
            assert max(residual(weights(theta), t, a, theta) for t in trees(order)) < 1e-12


def test_another_name_is_an_error_that_lists_the_methods():
    with pytest.raises(ArgumentError, match="no method 'rk5'"):
        tableau_of("rk5")
