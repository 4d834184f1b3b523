"""Facts about reductions: accumulation types, NaN, ties, empty axes, gradients of products with zeros."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.ops.reduction import reduce as r
from tests.ops.apply import gradients, run, traced

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int32", "int64"])
def test_sums_and_products_of_integers_are_i64(dtype):
    x = np.ones((300, 2), dtype)
    for function, expected in ((r.sum, 300), (r.prod, 1)):
        result = run(lambda v, f=function: f(v, axes=(0,)), x)
        assert result.dtype == np.int64
        np.testing.assert_array_equal(result, [expected, expected])


def test_empty_folds_are_neutral():
    x = np.ones((2, 0), "float32")
    np.testing.assert_array_equal(run(lambda v: r.sum(v, axes=(1,)), x), [0, 0])
    np.testing.assert_array_equal(run(lambda v: r.prod(v, axes=(1,)), x), [1, 1])
    empty = np.ones((2, 0), bool)
    np.testing.assert_array_equal(run(lambda v: r.any(v, axes=(1,)), empty), [False, False])
    np.testing.assert_array_equal(run(lambda v: r.all(v, axes=(1,)), empty), [True, True])


def test_extremes_propagate_nan():
    x = np.array([[1.0, NAN, 3.0], [2.0, 1.0, 0.0]])
    np.testing.assert_array_equal(run(lambda v: r.max(v, axes=(1,)), x), [NAN, 2])
    np.testing.assert_array_equal(run(lambda v: r.min(v, axes=(1,)), x), [NAN, 0])


def test_ties_share_the_gradient():
    (gradient,) = gradients(lambda v: r.max(v, axes=(0,)), np.array([2.0, 1.0, 2.0, 2.0]))
    np.testing.assert_allclose(gradient, [1 / 3, 0, 1 / 3, 1 / 3])


@pytest.mark.parametrize("name", ["max", "min"])
def test_gradients_of_extremes_are_torch(torch, name):
    x = np.random.default_rng(0).integers(0, 3, (4, 5, 6)).astype(float)
    for axes, keepdims in (((0,), False), ((2, 0), True), ((0, 1, 2), False)):
        t = torch.tensor(x, requires_grad=True)
        getattr(torch, f"a{name}")(t, axes, keepdims).sum().backward()
        found = gradients(lambda v, a=axes, k=keepdims: getattr(r, name)(v, axes=a, keepdims=k), x)[0]
        np.testing.assert_allclose(found, t.grad.numpy())


def test_positions_are_the_first_and_nan_wins():
    x = np.array([[1.0, 3.0, 3.0], [NAN, 5.0, NAN], [0.0, NAN, 9.0], [-INF, -INF, -INF]])
    largest = run(lambda v: r.argmax(v, axis=1), x)
    assert largest.dtype == np.int64
    np.testing.assert_array_equal(largest, [1, 0, 1, 0])
    np.testing.assert_array_equal(run(lambda v: r.argmin(v, axis=1, keepdims=True), x), [[0], [0], [1], [0]])


@pytest.mark.parametrize("row", [[2.0, 3.0, 4.0], [2.0, 0.0, 4.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0], [5.0]])
def test_gradient_of_prod_with_zeros(row):
    expected = [np.prod(row[:i] + row[i + 1 :]) for i in range(len(row))]
    (gradient,) = gradients(lambda v: r.prod(v, axes=(0,)), np.array(row))
    np.testing.assert_allclose(gradient, expected)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33])
def test_gradient_of_prod_of_any_length(count):
    x = np.random.default_rng(count).uniform(0.5, 2, (2, count))
    found = gradients(lambda v: r.prod(v, axes=(1,)), x)[0]
    np.testing.assert_allclose(found, np.prod(x, axis=1, keepdims=True) / x)


@pytest.mark.parametrize(
    "shape,target,ops",
    [
        ((2, 3), (2, 3), []),
        ((2, 3), (3,), ["sum"]),
        ((2, 3), (2, 1), ["sum", "reshape"]),
        ((4, 2, 3), (1, 3), ["sum", "reshape"]),
        ((4, 2, 3), (), ["sum"]),
        ((1, 3), (3,), ["sum"]),
        ((0, 3), (1, 3), ["sum", "reshape"]),
    ],
)
def test_sum_to(shape, target, ops):
    x = np.random.default_rng(0).standard_normal(shape)
    graph, (result,) = traced(lambda v: r.sum_to(v, target), x)
    assert [n.op.name for n in graph.nodes()] == ops and result.shape == target
    ones = np.ones(target)
    found = run(lambda v: r.sum_to(v, target), x)
    np.testing.assert_allclose(np.vdot(found, ones), np.vdot(x, np.broadcast_to(ones, shape)))


def test_reduced_shape():
    assert r.reduced_shape((2, 3, 4), (0, 2), False) == (3,)
    assert r.reduced_shape((2, 3, 4), (0, 2), True) == (1, 3, 1)
