"""cond and switch, eager and compiled: values, gradients, checks, what is not computed."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError, ConditionError, DTypeError, IndexRangeError, ShapeError, TraceError
from graphc.nn import functional as F


class Chooser(nn.Module):
    """Two layers of which one is used."""

    def __init__(self):
        super().__init__()
        self.small, self.large = nn.Linear(3, 4), nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4))

    def forward(self, x):
        return gc.cond(x.abs().sum() > 3, lambda x: self.large(x) * 2, lambda x: gc.exp(self.small(x)), (x,))


@pytest.mark.parametrize("scale", [0.1, 10.0])
def test_models_choose_by_values_with_gradients(scale):
    gc.manual_seed(0)
    model = Chooser().double()
    compiled = gc.compile(model)
    x = (gc.randn(2, 3, dtype=gc.float64) * scale).requires_grad_()
    results = []
    for f in (model, compiled):
        model.zero_grad()
        x.grad = None
        loss = (f(x) ** 2).sum()
        loss.backward()
        gradients = [None if p.grad is None else p.grad.numpy().copy() for p in model.parameters()]
        results.append((loss.item(), x.grad.numpy().copy(), gradients))
    np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-12)
    np.testing.assert_allclose(results[1][1], results[0][1], rtol=1e-10)
    for expected, found in zip(results[0][2], results[1][2], strict=True):
        np.testing.assert_allclose(found, 0 if expected is None else expected, rtol=1e-10, atol=1e-14)


def test_one_program_serves_both_ways():
    compiled = gc.compile(Chooser())
    with gc.no_grad():
        for scale in (0.1, 10.0, 0.1):
            compiled(gc.ones(2, 3) * scale)
    assert len(compiled.programs) == 1


def test_what_is_not_chosen_is_not_computed():
    seen = []
    look = gc.opaque(lambda x: seen.append(1), results=lambda x: None)
    with pytest.raises(TraceError, match="runs in Python"):
        gc.compile(lambda p, x: gc.cond(p, lambda x: (look(x), x)[1], lambda x: x, (x,)))(gc.tensor(True), gc.ones(1))
    compiled = gc.compile(lambda x: gc.cond(x.min() > 0, gc.log, lambda x: x * 0, (x,)))
    x = gc.tensor([-1.0, 2.0], requires_grad=True)
    compiled(x).sum().backward()
    assert x.grad.tolist() == [0, 0], "where selects would give NaN"


def test_training_steps():
    def trained(compiled):
        gc.manual_seed(0)
        model = Chooser().double()
        optimizer = gc.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        gc.manual_seed(1)
        batches = [gc.randn(2, 3, dtype=gc.float64) * s for s in (0.1, 10.0, 0.2, 5.0)]

        def train(x):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), gc.ones(2, 4, dtype=gc.float64))
            loss.backward()
            optimizer.step()
            return loss

        step = gc.compile(train) if compiled else train
        return [step(x).item() for x in batches]

    # Momentum moves a layer that was not chosen only in compiled code, whose gradient of it is zeros and not None.
    np.testing.assert_allclose(trained(True)[:2], trained(False)[:2], rtol=1e-10)


def test_nested_in_each_other_and_in_scan():
    def f(x):
        inner = lambda x: gc.cond(x.sum() > 2, lambda x: x * 3, lambda x: x + 1, (x,))  # noqa: E731
        y = gc.cond(x.sum() > 1, inner, lambda x: -x, (x,))
        step = lambda h, r: (gc.cond(r > 0, lambda h, r: h + r, lambda h, r: h * r, (h, r)), h)  # noqa: E731
        return gc.scan(step, y.sum(), x)

    compiled = gc.compile(f)
    for values in ([0.1, 0.2], [0.9, 0.9], [3.0, -0.5], [-1.0, -2.0]):
        x = gc.tensor(values, dtype=gc.float64)
        for found, expected in zip(compiled(x), f(x), strict=True):
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)
    x = gc.tensor([3.0, -0.5], dtype=gc.float64, requires_grad=True)
    f(x)[0].backward()
    expected, x.grad = x.grad, None
    compiled(x)[0].backward()
    np.testing.assert_allclose(x.grad.numpy(), expected.numpy(), rtol=1e-10)


def test_switch():
    functions = [lambda x: x + 1, lambda x: x * 2, gc.exp, lambda x: -x, lambda x: x * x]
    compiled = gc.compile(lambda i, x: gc.switch(i, functions, (x,)))
    x = gc.tensor([1.0, 2.0], dtype=gc.float64)
    for i in range(-1, 7):
        expected = functions[min(max(i, 0), 4)](x).numpy()
        np.testing.assert_allclose(compiled(gc.tensor(i), x).numpy(), expected, rtol=1e-12)
        np.testing.assert_allclose(gc.switch(i, functions, (x,)).numpy(), expected)
        np.testing.assert_allclose(gc.switch(gc.tensor(i), functions, (x,)).numpy(), expected)
    assert len(compiled.programs) == 1


def test_nested_operands_and_results():
    def f(state):
        return gc.cond(
            state["x"].sum() > 0,
            lambda s: {"y": (s["x"] * 2, s["n"] + 1)},
            lambda s: {"y": (s["x"], s["n"])},
            (state,),
        )

    found = gc.compile(f)({"x": gc.ones(2), "n": gc.tensor(1)})
    assert found["y"][0].tolist() == [2, 2] and found["y"][1].item() == 2


def test_checks_hold_in_the_branch_that_is_taken():
    table = gc.arange(6.0).reshape(3, 2)
    f = gc.compile(lambda p, i: gc.cond(p, lambda i: table[i], lambda i: gc.zeros(2), (i,)))
    assert f(gc.tensor(True), gc.tensor(2)).tolist() == [4, 5]
    assert f(gc.tensor(False), gc.tensor(7)).tolist() == [0, 0]
    with pytest.raises((IndexRangeError, ConditionError)):
        f(gc.tensor(True), gc.tensor(7))


def test_conditions_that_are_known_are_no_branch():
    graph = gc.trace(lambda x: gc.cond(True, lambda x: x + 1, lambda x: x, (x,)), gc.ones(2))
    assert [n.op.name for n in graph.nodes() if n.op.name == "cond"] == []


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize(
    ("other", "error", "message"),
    [
        (lambda x: x[:1], ShapeError, r"result: shape \[2\] from one function and \[1\] from the other"),
        (lambda x: x.double(), DTypeError, "result: f32 from one function and f64 from the other"),
        (lambda x: (x, x), ArgumentError, "result: a tensor from one function and a tuple of 2 from the other"),
    ],
)
def test_results_of_other_types_are_refused_at_the_first_compiled_call(other, error, message, positive):
    x = gc.full((2,), 1.0 if positive else -1.0)
    compiled = gc.compile(lambda x: gc.cond(x.sum() > 0, lambda x: x, other, (x,)))
    for _ in range(2):
        with pytest.raises(error, match=message):
            compiled(x)


def test_eager_mode_calls_only_the_function_that_is_chosen():
    x, calls = gc.ones(2), []

    def other(x):
        calls.append("called")
        return x[:1]

    for _ in range(2):
        assert gc.cond(x.sum() > 0, lambda x: x * 2, other, (x,)).tolist() == [2, 2]
    assert not calls
    assert gc.cond(x.sum() < 0, lambda x: x * 2, other, (x,)).tolist() == [1]
    assert calls == ["called"]


def test_wrong_calls():
    x = gc.ones(2)
    with pytest.raises(DTypeError, match="the condition is f32"):
        gc.cond(x.sum(), gc.exp, gc.log, (x,))
    with pytest.raises(ShapeError, match=r"the condition has shape \[2\]"):
        gc.cond(x > 0, gc.exp, gc.log, (x,))
    with pytest.raises(ArgumentError, match="operands must be a tuple"):
        gc.cond(True, gc.exp, gc.log, x)
    with pytest.raises(ShapeError, match=r"result: shape \[2\]"):
        gc.compile(lambda x: gc.cond(x.sum() > 0, lambda x: x, lambda x: x[:1], (x,)))(x)
    with pytest.raises(ArgumentError, match="result: a tensor from one function and a tuple of 2 from the other"):
        gc.compile(lambda x: gc.cond(x.sum() > 0, lambda x: x, lambda x: (x, x), (x,)))(x)
    with pytest.raises(DTypeError, match="not one integer"):
        gc.switch(gc.tensor(0.5), [gc.exp], (x,))


@pytest.mark.parametrize("threads", [1, 2])
def test_with_threads(threads):
    before = gc.get_num_threads()
    gc.set_num_threads(threads)
    try:
        f = gc.compile(lambda x: gc.cond(x.sum() > 0, lambda x: x @ x.t(), lambda x: (x * 2) @ x.t(), (x,)))
        for sign in (1.0, -1.0):
            x = gc.rand(200, 300) * sign
            expected = x.numpy() @ x.numpy().T * (1 if sign > 0 else 2)
            np.testing.assert_allclose(f(x).numpy(), expected, rtol=1e-4)
    finally:
        gc.set_num_threads(before)
