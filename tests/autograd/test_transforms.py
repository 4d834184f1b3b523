"""Gradients of functions as functions."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import ArgumentError, DTypeError, GradientError
from graphc.ir.graph.interpret import evaluate

X = graphc.tensor([1.0, 2.0, 3.0])


def cube(x: graphc.Tensor) -> graphc.Tensor:
    return (x**3).sum()


def test_grad_and_its_gradient():
    assert graphc.grad(cube)(X).tolist() == [3, 12, 27]
    second = graphc.grad(lambda y: graphc.grad(cube)(y).sum())
    assert second(X).tolist() == [6, 12, 18]
    assert graphc.grad(lambda y: second(y).sum())(X).tolist() == [6, 6, 6]
    assert X.grad is None and not X.requires_grad


def test_results_have_history_only_when_someone_needs_it():
    assert not graphc.grad(cube)(X).requires_grad
    w = graphc.tensor([1.0, 2.0, 3.0], requires_grad=True)
    g = graphc.grad(lambda x: (x * x * w).sum())(X)
    g.sum().backward()
    assert w.grad.tolist() == [2, 4, 6]
    g = graphc.grad(cube)(w)
    g.sum().backward()
    assert w.grad.tolist() == [2 + 6, 4 + 12, 6 + 18]
    with graphc.no_grad():
        assert graphc.grad(cube)(w).tolist() == [3, 12, 27]


def test_value_and_grad_of_nested_arguments():
    value, gradient = graphc.value_and_grad(lambda p: (p["w"] * p["b"][0]).sum())({"w": X, "b": [X * 2]})
    assert value.item() == 28
    assert gradient["w"].tolist() == [2, 4, 6] and gradient["b"][0].tolist() == [1, 2, 3]
    value, (ga, gb) = graphc.value_and_grad(lambda a, b: (a * b).sum(), argnums=(0, -1))(X, X + 1)
    assert value.item() == 20 and ga.tolist() == [2, 3, 4] and gb.tolist() == [1, 2, 3]


def test_grad_and_value_is_the_other_order():
    gradient, (value, extra) = graphc.func.grad_and_value(lambda x: ((x * x).sum(), "extra"), has_aux=True)(X)
    assert (value.item(), extra, gradient.tolist()) == (14, "extra", [2, 4, 6])


def test_aux():
    (value, extra), gradient = graphc.value_and_grad(lambda x: (x.sum(), "extra"), has_aux=True)(X)
    assert (value.item(), extra, gradient.tolist()) == (6, "extra", [1, 1, 1])
    assert graphc.grad(lambda x: (x.sum(), 5), has_aux=True)(X)[1] == 5


def test_vjp():
    output, pull = graphc.vjp(lambda a, b: (a * b, {"s": a + b}), X, X * 2)
    assert output[1]["s"].tolist() == [3, 6, 9]
    for _ in range(2):
        ga, gb = pull((X, {"s": graphc.ones(3)}))
        assert ga.tolist() == [3, 9, 19] and gb.tolist() == [2, 5, 10]
    with pytest.raises(ArgumentError, match="weights: a tuple of 2 in the output and a tensor"):
        pull(X)


def test_a_constant_function_has_gradient_zero():
    assert graphc.grad(lambda x: graphc.tensor(1.0))(X).tolist() == [0, 0, 0]
    assert graphc.grad(lambda a, b: b.sum(), argnums=0)(X, X).tolist() == [0, 0, 0]
    _, pull = graphc.vjp(lambda x: graphc.ones(2), X)
    assert pull(graphc.ones(2))[0].tolist() == [0, 0, 0]


def test_errors():
    with pytest.raises(GradientError, match=r"returns one number, got \[3\]"):
        graphc.grad(lambda x: x)(X)
    with pytest.raises(DTypeError, match="floating-point arguments, got i64"):
        graphc.grad(cube)(graphc.tensor([1]))
    with pytest.raises(ArgumentError, match="names argument 1, the call has 1"):
        graphc.grad(cube, argnums=1)(X)
    with pytest.raises(ArgumentError, match="holds no tensor"):
        graphc.grad(lambda n: X.sum())(3)


def test_under_trace():
    graph = graphc.trace(graphc.grad(lambda y: graphc.grad(cube)(y).sum()), X)
    assert evaluate(graph, [X.numpy()])[0].tolist() == [6, 12, 18]
    graph = graphc.trace(lambda x: graphc.vjp(cube, x)[1](graphc.tensor(2.0))[0], X)
    np.testing.assert_allclose(evaluate(graph, [X.numpy()])[0], [6, 24, 54])


def test_linearize():
    def function(x, tree):
        return {"a": graphc.sin(x) * tree[0], "b": (x * x).sum()}

    x, y = graphc.linspace(0, 1, 3).double(), graphc.ones(3, dtype=graphc.float64)
    output, push = graphc.func.linearize(function, x, [y])
    for seed in (1.0, 2.0):
        along = (x * seed, [y * seed])
        expected, tangent = graphc.jvp(function, (x, [y]), along)
        found = push(*along)
        for key in ("a", "b"):
            np.testing.assert_allclose(output[key].numpy(), expected[key].numpy(), rtol=1e-12)
            np.testing.assert_allclose(found[key].numpy(), tangent[key].numpy(), rtol=1e-12)
    with pytest.raises(graphc.errors.ArgumentError, match="tangents: a tuple of 2 in the primals and a tuple of 1"):
        push(x)
    _, constant = graphc.func.linearize(lambda x: graphc.ones(2), x)
    np.testing.assert_array_equal(constant(x).numpy(), [0, 0])
