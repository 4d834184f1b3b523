"""Forward mode through loops and branches: the derivatives of eager steps, without a bound of the steps."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import GradientError
from graphc.passes.pipeline import optimize


def f64(*values):
    return gc.tensor(*values, dtype=gc.float64)


def grows(x, a):
    """Return the state after a number of steps that values decide, and ints among the carries."""
    start = (x, gc.tensor(0))
    return gc.while_loop(lambda s: s[0].sum() < 100, lambda s: (s[0] * a + s[0].sin(), s[1] + 1), start)[0]


def folds(x, a):
    def step(carry, row):
        carry = (carry * row).tanh() + a
        return carry, carry.sum()

    last, sums = gc.scan(step, x, gc.stack([x, x * a, x + 1]), reverse=True)
    return last * sums.sum()


def stops(x, a):
    """Return the state after a number of steps with an upper bound."""
    start = (gc.tensor(0), x)
    return gc.while_loop(lambda s: (s[0] < 4) & (s[1].sum() < 50), lambda s: (s[0] + 1, s[1] * a), start)[1]


def chooses(x, a):
    return gc.cond(x.sum() > a, lambda x: (x * a).exp(), lambda x: x - a, (x,))


def nests(x, a):
    def step(x, _):
        return gc.cond(
            x[0] < 5, lambda x: gc.fori_loop(0, gc.tensor(3), lambda i, x: x * a, x), lambda x: x / a, (x,)
        ), x

    return gc.scan(step, x, length=4)[0]


@pytest.mark.parametrize("function", [grows, stops, folds, chooses, nests])
def test_tangents_are_those_of_differences(function):
    x, a, dx, da = f64([1.0, 2.0]), f64(1.7), f64([0.3, -0.2]), f64(0.5)
    near = [function(x + e * dx, a + e * da) for e in (1e-6, -1e-6)]
    expected = ((near[0] - near[1]) / 2e-6).numpy()

    def push(x, a):
        return gc.jvp(function, (x, a), (dx, da))

    def matrices(x, a):
        return gc.func.jacfwd(function, (0, 1))(x, a)

    for run in (push, gc.compile(push), lambda *args: gc.jvp(gc.compile(function), args, (dx, da))):
        value, tangent = run(x, a)
        np.testing.assert_allclose(value.numpy(), function(x, a).numpy(), rtol=1e-12)
        np.testing.assert_allclose(tangent.numpy(), expected, rtol=1e-6)
    by_x, by_a = gc.compile(matrices)(x, a)
    np.testing.assert_allclose((by_x @ dx + by_a * da).numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("function", [grows, stops, folds, chooses, nests])
def test_second_derivatives_are_those_of_eager_mode(function):
    x, a, dx = f64([1.0, 2.0]), f64(1.7), f64([0.3, -0.2])

    def second(x, a):
        return gc.jvp(lambda x: gc.jvp(lambda x: function(x, a), (x,), (dx,))[1], (x,), (dx,))[1]

    np.testing.assert_allclose(gc.compile(second)(x, a).numpy(), second(x, a).numpy(), rtol=1e-10)


def test_a_batch_of_tangents_has_numbers_of_steps_of_its_own():
    x, a = f64([[1.0, 2.0], [30.0, 40.0]]), f64(1.7)
    push = gc.vmap(lambda x: gc.jvp(lambda x: grows(x, a), (x,), (x,))[1])
    np.testing.assert_allclose(
        gc.compile(push)(x).numpy(), np.stack([gc.jvp(lambda x: grows(x, a), (r,), (r,))[1].numpy() for r in x])
    )


def test_the_values_are_computed_once():
    x, a = f64([1.0, 2.0]), f64(1.7)
    graph = gc.trace(lambda x, a: gc.jvp(lambda x: grows(x, a), (x,), (x,)), x, a)
    assert sum(node.op.name == "while_loop" for node in optimize(graph).nodes()) == 1


def test_a_gradient_of_tangents_needs_the_bound():
    x, a = f64([1.0, 2.0]), f64(1.7)
    with pytest.raises(GradientError, match="without a bound"):
        gc.compile(gc.grad(lambda x: gc.jvp(lambda x: grows(x, a), (x,), (x,))[1].sum()))(x)
    for function in (folds, stops):
        slope = gc.grad(lambda x, function=function: gc.jvp(lambda x: function(x, a), (x,), (x,))[1].sum())
        np.testing.assert_allclose(gc.compile(slope)(x).numpy(), slope(x).numpy(), rtol=1e-10)


def test_gradients_that_grow_by_constants_have_tangents():
    def function(x, a):
        u, v = gc.fori_loop(0, 4, lambda i, s: (s[0].sin() * x, s[1] + a), (x, a))  # whose derivative by a is 5
        return u + v

    def second(x, a):
        return gc.jvp(gc.grad(function, (0, 1)), (x, a), (x, a))

    x, a = f64(0.9), f64(0.4)
    expected = second(x, a)
    assert expected[0][1].item() == 5
    for pair, eager in zip(gc.compile(second)(x, a), expected, strict=True):
        np.testing.assert_allclose([t.item() for t in pair], [t.item() for t in eager], rtol=1e-12)
