"""Scans of associative functions: values and gradients, eager and compiled; the size of what is compiled."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import ArgumentError, DTypeError, ShapeError


def linear(p, q):
    return p[0] * q[0], p[1] * q[0] + q[1]


@pytest.mark.parametrize("count", [1, 2, 3, 8, 9, 10, 13, 16, 35, 101])
@pytest.mark.parametrize("reverse", [False, True])
def test_linear_recurrences(count, reverse):
    a = gc.tensor(np.random.default_rng(0).random((2, count, 3)), requires_grad=True)
    b = gc.tensor(np.random.default_rng(1).random((2, count, 3)))
    h, rows = np.zeros((2, 3)), []
    for i in reversed(range(count)) if reverse else range(count):
        h = h * a.detach().numpy()[:, i] + b.numpy()[:, i]
        rows.append(h)
    expected = np.stack(rows[::-1] if reverse else rows, 1)
    f = lambda a, b: gc.associative_scan(linear, (a, b), dim=1, reverse=reverse)[1]  # noqa: E731
    np.testing.assert_allclose(f(a, b).detach().numpy(), expected, rtol=1e-12)
    compiled = gc.compile(f)
    np.testing.assert_allclose(compiled(a, b).detach().numpy(), expected, rtol=1e-12)
    if count == 1:
        return  # nothing depends on a
    weights = gc.tensor(np.random.default_rng(2).random((2, count, 3)))
    (compiled(a, b) * weights).sum().backward()
    gradient, a.grad = a.grad, None
    (f(a, b) * weights).sum().backward()
    assert gradient is not None and a.grad is not None
    np.testing.assert_allclose(gradient.numpy(), a.grad.numpy(), rtol=1e-10)


@pytest.mark.parametrize("dim", [0, -1])
def test_functions_that_do_not_commute(dim):
    x = np.random.default_rng(0).standard_normal((40, 2, 2))
    expected = [x[0]]
    for m in x[1:]:
        expected.append(expected[-1] @ m)
    if dim == 0:
        run = lambda x: gc.associative_scan(lambda p, q: p @ q, x)  # noqa: E731
    else:  # the dimension behind those of the matrices
        product = lambda p, q: (p.movedim(-1, 0) @ q.movedim(-1, 0)).movedim(0, -1)  # noqa: E731
        run = lambda x: gc.associative_scan(product, x.movedim(0, -1), dim=-1).movedim(-1, 0)  # noqa: E731
    for function in (run, gc.compile(run)):
        np.testing.assert_allclose(function(gc.tensor(x)).numpy(), np.stack(expected), rtol=1e-10)


def test_last_element_and_largest_so_far_of_integers():
    x = gc.tensor(np.random.default_rng(0).integers(0, 1000, 77))
    for f, expected in ((gc.maximum, np.maximum.accumulate(x.numpy())), (lambda p, q: q, x.numpy())):
        run = lambda x, f=f: gc.associative_scan(f, x)  # noqa: E731
        np.testing.assert_array_equal(run(x).numpy(), expected)
        np.testing.assert_array_equal(gc.compile(run)(x).numpy(), expected)


def test_what_is_compiled_does_not_grow_with_the_length():
    sizes = []
    for count in (25, 10_000):
        graph = gc.trace(lambda x: gc.associative_scan(linear, (x, x))[1], gc.ones(count))
        sizes.append(len(list(graph.nodes())))
    assert sizes[0] == sizes[1]


def test_named_sizes():
    f = lambda a, b: gc.associative_scan(linear, (a, b))[1]  # noqa: E731
    n = gc.Dim("n", min=2, max=200)
    compiled = gc.compile(f, dims={"a": (n,), "b": (n,)})
    for count in (7, 50, 2):
        a, b = gc.rand(count, dtype=gc.float64), gc.rand(count, dtype=gc.float64)
        np.testing.assert_allclose(compiled(a, b).numpy(), f(a, b).numpy(), rtol=1e-12)
    assert len(compiled.programs) == 1


def test_in_batches():
    f = lambda a, b: gc.associative_scan(linear, (a, b))[1]  # noqa: E731
    a, b = gc.rand(3, 20, dtype=gc.float64), gc.rand(3, 20, dtype=gc.float64)
    expected = np.stack([f(p, q).numpy() for p, q in zip(a, b, strict=True)])
    np.testing.assert_allclose(gc.vmap(f)(a, b).numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(gc.compile(gc.vmap(f))(a, b).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("count", [5, 30])
def test_wrong_calls(count):
    with pytest.raises(ShapeError, match="sizes along dimension"):
        gc.associative_scan(lambda a, b: a, gc.ones(0))
    for function, error, text in (
        (lambda p, q: (p + q)[:1].sum(), ShapeError, r"element: shape \[.*\] as an argument and \[\] as the result"),
        (lambda p, q: (p + q).double(), DTypeError, "element: f32 as an argument and f64 as the result"),
        (lambda p, q: (p, q), ArgumentError, "element: a tensor as an argument and a tuple of 2"),
    ):
        run = lambda x, function=function: gc.associative_scan(function, x)  # noqa: E731
        for call in (run, gc.compile(run)):
            with pytest.raises(error, match=text):
                call(gc.ones(count))
