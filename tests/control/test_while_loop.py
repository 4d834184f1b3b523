"""Loops whose length values decide, and maps: eager and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import (
    ArgumentError,
    ConditionError,
    DTypeError,
    GradientError,
    IndexRangeError,
    ShapeError,
    TraceError,
)
from graphc.ops.effects.check import check_true


def newton(a):
    state = (a, a)
    return gc.while_loop(
        lambda s: (s[0] * s[0] - s[1]).abs() > 1e-12, lambda s: ((s[0] + s[1] / s[0]) / 2, s[1]), state
    )[0]


def test_a_loop_runs_as_often_as_values_ask_for():
    compiled = gc.compile(newton)
    with gc.no_grad():
        for value in (1.0, 2.0, 100.0, 1e6):
            a = gc.tensor(value, dtype=gc.float64)
            assert compiled(a).item() == newton(a).item()
            np.testing.assert_allclose(compiled(a).item(), np.sqrt(value), rtol=1e-12)
    assert len(compiled.programs) == 1


def test_greedy_decoding_until_a_token_ends_it():
    gc.manual_seed(0)
    table = gc.rand(10, 10)

    def decode(first):
        def more(s):
            token, _, count = s
            return (token != 3) & (count < 12)

        def step(s):
            token, out, count = s
            token = table[token].argmax().reshape(())
            return token, gc.where(gc.arange(12) == count, token, out), count + 1

        return gc.while_loop(more, step, (first, gc.zeros(12, dtype=gc.int64), gc.tensor(0)))[1:]

    program = gc.compile(decode)
    for first in range(10):
        for a, b in zip(program(gc.tensor(first)), decode(gc.tensor(first)), strict=True):
            assert a.tolist() == b.tolist()
    assert len(program.programs) == 1
    with pytest.raises(IndexRangeError, match="index 10"):
        program(gc.tensor(10))
    bounded = gc.compile(lambda t: gc.while_loop(lambda s: s.sum() < 50, lambda s: s + table[2], t))
    expected = gc.while_loop(lambda s: s.sum() < 50, lambda s: s + table[2], gc.zeros(10))
    np.testing.assert_allclose(bounded(gc.zeros(10)).numpy(), expected.numpy(), rtol=1e-5)


@pytest.mark.parametrize("scale", [0.01, 0.3, 100.0])
def test_gradients_with_a_bound(scale):
    weight = gc.tensor(np.random.default_rng(0).random((3, 3)), requires_grad=True)

    def f(x):
        found = gc.while_loop(
            lambda s: s[0].sum() < 10, lambda s: (s[0] * 1.5 + gc.tanh(s[1] @ weight), s[1] * 0.9), (x, x), max_steps=20
        )
        return (found[0] ** 2).sum()

    results = []
    for function in (f, gc.compile(f)):
        x = gc.full((3,), scale, dtype=gc.float64, requires_grad=True)
        weight.grad = None
        value = function(x)
        value.backward()
        gradient = np.zeros((3, 3)) if weight.grad is None else weight.grad.numpy().copy()
        results.append((value.item(), x.grad.numpy(), gradient))
    for expected, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)


def test_a_gradient_without_a_bound_is_refused():
    x = gc.tensor(2.0, requires_grad=True)
    with pytest.raises(GradientError, match="max_steps=N"):
        gc.compile(newton)(x)


@pytest.mark.parametrize("bound", [0, 1, 7])
def test_fori_loops(bound):
    weight = gc.rand(4, 4, dtype=gc.float64)

    def f(x, n):
        return gc.fori_loop(0, n, lambda i, s: gc.tanh(s @ weight) + i * 0.01, x)

    x = gc.rand(2, 4, dtype=gc.float64)
    expected = x
    for i in range(bound):
        expected = gc.tanh(expected @ weight) + i * 0.01
    compiled = gc.compile(f)
    # A whole number in a tensor times 0.01 is f32, as in eager mode.
    np.testing.assert_allclose(f(x, bound).numpy(), expected.numpy(), rtol=1e-6)
    np.testing.assert_allclose(compiled(x, gc.tensor(bound)).numpy(), f(x, bound).numpy(), rtol=1e-12)
    np.testing.assert_allclose(f(x, gc.tensor(bound)).numpy(), f(x, bound).numpy(), rtol=1e-12)
    known = gc.compile(lambda x: f(x, bound))
    y = gc.tensor(x.numpy(), requires_grad=True)
    known(y).sum().backward()
    gradient, y.grad = y.grad, None
    f(y, bound).sum().backward()
    np.testing.assert_allclose(gradient.numpy(), y.grad.numpy(), rtol=1e-10)


def test_loops_in_loops():
    def f(x):
        def outer(s):
            inner = gc.while_loop(lambda t: t[0] < 5, lambda t: (t[0] + 1, t[1] * 1.01 + x), (gc.tensor(0), s[1]))
            return s[0] + 1, inner[1]

        return gc.while_loop(lambda s: s[0] < 4, outer, (gc.tensor(0), x))[1]

    x = gc.rand(5, dtype=gc.float64)
    with gc.no_grad():
        np.testing.assert_allclose(gc.compile(f)(x).numpy(), f(x).numpy(), rtol=1e-12)


def test_map_holds_its_function_once():
    f = lambda r: {"sum": r["a"].sum() * r["b"], "row": r["a"] * 2}  # noqa: E731
    xs = {"a": gc.rand(50, 3), "b": gc.rand(50)}
    compiled = gc.compile(lambda xs: gc.map(f, xs))
    found = compiled(xs)
    np.testing.assert_allclose(found["sum"].numpy(), (xs["a"].sum(1) * xs["b"]).numpy(), rtol=1e-5)
    np.testing.assert_allclose(found["row"].numpy(), xs["a"].numpy() * 2)
    assert len(list(gc.trace(lambda xs: gc.map(f, xs), xs).nodes())) < 10


def test_wrong_calls():
    x = gc.ones(2)
    for run in (lambda f: f(), lambda f: gc.compile(lambda _: f())(gc.ones(1))):
        with pytest.raises(ShapeError, match=r"state: shape \[2\] before the step and \[4\] after"):
            run(lambda: gc.while_loop(lambda s: s.sum() < 9, lambda s: gc.cat([s, s]), x))
        with pytest.raises(DTypeError, match="state: f32 before the step and f64 after"):
            run(lambda: gc.while_loop(lambda s: s.sum() < 9, lambda s: s.double(), x))
        with pytest.raises(DTypeError, match="not one bool"):
            run(lambda: gc.while_loop(lambda s: s < 9, lambda s: s * 2, x))
    with pytest.raises(ArgumentError, match="holds no tensor"):
        gc.while_loop(lambda s: s < 9, lambda s: s + 1, 0)
    with pytest.raises(ArgumentError, match="true for every state, so that the loop would never end"):
        gc.compile(lambda x: gc.while_loop(lambda s: True, lambda s: s + 1, x))(x)
    with pytest.raises(ShapeError, match=r"state: shape \[2\] before"):
        gc.compile(lambda x: gc.while_loop(lambda s: False, lambda s: gc.cat([s, s]), x))(x)


@pytest.mark.parametrize("condition", [False, np.bool_(False), 0])
def test_a_condition_that_is_a_false_number_ends_the_loop_at_once(condition):
    def function(x):
        return gc.while_loop(lambda s: condition, lambda s: s + 1, x)

    x = gc.tensor([1.0, 2.0])
    for run in (function, gc.compile(function)):
        assert run(x).tolist() == [1, 2]


def test_the_gradient_of_a_branch_in_a_loop_does_not_touch_the_other_one():
    def f(x):
        return gc.while_loop(lambda s: s > 1, lambda s: gc.log(s), x, max_steps=8)

    x = gc.tensor(20.0, dtype=gc.float64, requires_grad=True)
    gc.compile(f)(x).backward()
    assert np.isfinite(x.grad.item())
    np.testing.assert_allclose(x.grad.item(), 1 / (20.0 * np.log(20.0) * np.log(np.log(20.0))), rtol=1e-10)


def test_steps_that_draw():
    x = gc.ones(3)
    for function in (
        lambda x: gc.map(lambda v: v + gc.rand(2), x),
        lambda x: gc.fori_loop(0, 3, lambda i, s: s + gc.rand(3), x),
    ):
        gc.manual_seed(0)
        expected = function(x).numpy()
        gc.manual_seed(0)
        np.testing.assert_allclose(gc.compile(function)(x).numpy(), expected, rtol=1e-6)


def _sum_of_rows(table: gc.Tensor, first: gc.Tensor, end: gc.Tensor) -> gc.Tensor:
    """Return the sum of rows ``first`` to ``end - 1`` and the two after each of them."""

    def step(state: tuple[gc.Tensor, gc.Tensor]) -> tuple[gc.Tensor, gc.Tensor]:
        at, total = state
        return at + 1, total + table[at + gc.arange(3)].sum()

    return gc.while_loop(lambda state: state[0] < end, step, (first, gc.zeros(())))[1]


def test_an_index_out_of_range_in_a_step_is_an_error_of_the_call():
    table, program = gc.arange(9).float(), gc.compile(_sum_of_rows, dims={"table": (gc.Dim("n"),)})
    for first, end in ((0, 7), (-2, 1), (5, 5), (20, 3)):
        arguments = table, gc.tensor(first), gc.tensor(end)
        assert program(*arguments).item() == _sum_of_rows(*arguments).item()
    for first, end in ((0, 8), (3, 1000), (-10, 2)):
        with pytest.raises(IndexRangeError, match=r"index -?\d+ .* is out of range"):
            program(table, gc.tensor(first), gc.tensor(end))
    assert program(gc.arange(99).float(), gc.tensor(0), gc.tensor(90)).item() == 3 * sum(range(1, 91))
    assert len(program.programs) == 1


def test_a_false_condition_in_a_step_is_an_error_of_the_call():
    @gc.compile
    def halved(x: gc.Tensor) -> gc.Tensor:
        def step(x: gc.Tensor) -> gc.Tensor:
            check_true(x > -3, message="too small")
            return x - 1

        return gc.while_loop(lambda x: (x > 0).any(), step, x)

    assert halved(gc.tensor([2, 0])).tolist() == [0, -2]
    with pytest.raises(ConditionError, match="too small"):
        halved(gc.tensor([9, 0]))


def test_a_check_in_the_condition_is_refused():
    table = gc.arange(5)
    with pytest.raises(TraceError, match="the condition checks an index"):
        gc.compile(lambda n: gc.while_loop(lambda n: table[n] < 3, lambda n: n + 1, n))(gc.tensor(0))


@pytest.mark.parametrize("checkpoint", [True, 1, 4, 25, 40])
@pytest.mark.parametrize("limit", [0, 3, 8, 90])
def test_checkpoints_change_no_value(checkpoint, limit):
    """No step, a part of a chunk, entire chunks, and more steps than the bound of 25 allows."""
    w, x = gc.randn(3, 3, generator=gc.Generator().manual_seed(1)), gc.ones(3)

    def loss(w, x, limit, checkpoint):
        def step(state):
            return {"n": state["n"] + 1, "x": (state["x"] @ w).sin() + x}

        state = gc.while_loop(
            lambda s: s["n"] < limit, step, {"n": gc.tensor(0), "x": x}, max_steps=25, checkpoint=checkpoint
        )
        return (state["x"] ** 2).sum()

    def run(checkpoint):
        return gc.func.value_and_grad(lambda w, x, limit: loss(w, x, limit, checkpoint), argnums=(0, 1))

    expected, gradients = gc.compile(run(False))(w, x, gc.tensor(limit))
    compiled, eager = gc.compile(run(checkpoint)), run(checkpoint)
    assert compiled(w, x, gc.tensor(limit))[0].item() == expected.item()
    for function in (compiled, eager):
        value, actual = function(w, x, gc.tensor(limit))
        np.testing.assert_allclose(value.numpy(), expected.numpy(), rtol=1e-5)
        for a, b in zip(actual, gradients, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6)


def test_checkpoints_of_a_for_loop():
    def loss(x, upper, bound=None):
        return gc.fori_loop(0, upper, lambda i, x: (x * 1.1 + i).sin(), x, bound, checkpoint=3).sum()

    x = gc.ones(2)
    expected = gc.grad(lambda x: gc.fori_loop(0, 10, lambda i, x: (x * 1.1 + i).sin(), x).sum())(x)
    for function in (lambda x: loss(x, 10), lambda x: loss(x, gc.tensor(10), 12)):
        for run in (gc.grad(function), gc.compile(gc.grad(function))):
            np.testing.assert_allclose(run(x).numpy(), expected.numpy(), rtol=1e-5)


def test_checkpoints_need_a_bound_and_a_condition_without_random_numbers():
    with pytest.raises(ArgumentError, match="checkpoint needs max_steps"):
        gc.while_loop(lambda s: s < 9, lambda s: s + 1, gc.tensor(0), checkpoint=True)
    draws = gc.compile(
        lambda s: gc.while_loop(lambda s: s < gc.rand(()), lambda s: s + 1, s, max_steps=9, checkpoint=True)
    )
    with pytest.raises(ArgumentError, match="draws random numbers"):
        draws(gc.tensor(0.0))
