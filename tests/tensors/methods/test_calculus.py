"""Integrals and derivatives of values at points, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.autograd import gradcheck
from graphc.errors import ArgumentError, AttributeValueError, IndexRangeError, ShapeError

RNG = np.random.default_rng(0)
Y, AT = RNG.normal(size=(5, 4)), (np.sort(RNG.normal(size=5)), np.sort(RNG.normal(size=4)))


def same(result, expected):
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_integrals(dim):
    y = graphc.tensor(Y)
    same(y.trapezoid(dx=0.5, dim=dim), np.trapezoid(Y, dx=0.5, axis=dim))
    same(graphc.trapz(y, graphc.tensor(AT[dim]), dim=dim), np.trapezoid(Y, AT[dim], axis=dim))
    running = y.cumulative_trapezoid(graphc.tensor(AT[dim]), dim=dim)
    same(running.select(dim, running.shape[dim] - 1), np.trapezoid(Y, AT[dim], axis=dim))
    assert running.shape[dim] == Y.shape[dim] - 1


def test_integrals_of_one_point_are_zero():
    assert graphc.ones(3, 1).trapezoid().tolist() == [0, 0, 0]
    assert graphc.ones(3, 1).cumulative_trapezoid().shape == (3, 0)
    with pytest.raises(IndexRangeError, match="at least one dimension"):
        graphc.tensor(1.0).trapezoid()
    with pytest.raises(ShapeError, match=r"x has shape \[3\] for 4 values"):
        graphc.ones(4).trapezoid(graphc.ones(3))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("spacing", [1, 2.0, [2.0, 0.5], AT], ids=["one", "two", "each", "positions"])
def test_derivatives(order, spacing):
    given = tuple(graphc.tensor(v) for v in AT) if spacing is AT else spacing
    numbers = spacing if isinstance(spacing, (tuple, list)) else [spacing] * 2
    for result, expected in zip(
        graphc.gradient(graphc.tensor(Y), spacing=given, edge_order=order),
        np.gradient(Y, *numbers, edge_order=order),
        strict=True,
    ):
        same(result, expected)


def test_derivatives_along_some_dimensions_and_of_few_points():
    (result,) = graphc.gradient(graphc.tensor(Y), dim=1)
    same(result, np.gradient(Y, axis=1))
    same(graphc.gradient(graphc.tensor(Y[:2]), dim=0)[0], np.gradient(Y[:2], axis=0))


def test_derivatives_are_differentiated_and_compiled():
    y = graphc.tensor(Y).requires_grad_()
    assert gradcheck(lambda y: graphc.gradient(y, spacing=(graphc.tensor(AT[0]), 2.0))[0], [y])
    assert gradcheck(lambda y: y.cumulative_trapezoid(dim=0), [y])
    compiled = graphc.compile(lambda y: graphc.gradient(y, edge_order=2)[1])
    same(compiled(y.detach()), np.gradient(Y, axis=1, edge_order=2))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"edge_order": 3}, AttributeValueError),
        ({"spacing": [1.0]}, ArgumentError),
        ({"spacing": (graphc.ones(3), graphc.ones(4))}, ShapeError),
    ],
)
def test_wrong_arguments(options, error):
    with pytest.raises(error):
        graphc.gradient(graphc.tensor(Y), **options)


def test_too_few_points():
    with pytest.raises(ShapeError, match="has 2 points"):
        graphc.gradient(graphc.ones(2), edge_order=2)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64])
def test_twice_the_areas_of_whole_numbers_are_whole_numbers_of_their_type(dtype):
    y, x = (np.array(v).astype(dtype) for v in ([[250, 100, 7, 20], [3, 120, 100, 90]], [3, 100, 7, 120]))
    doubled = ((y[:, 1:] + y[:, :-1]) * np.diff(x)).astype(np.int64)
    same(graphc.from_numpy(y).trapezoid(graphc.from_numpy(x)), doubled.sum(1) / 2)
    same(graphc.from_numpy(y).cumulative_trapezoid(graphc.from_numpy(x)), doubled.cumsum(1) / 2)
