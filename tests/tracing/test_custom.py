"""Custom functions in compiled code that only Python can run: opaque ones, and those that ask for values."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import GradientError, TraceError
from graphc.nn import functional as F


class Cube(gc.autograd.Function):
    """k * x**3 by numpy, both ways."""

    opaque = True

    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return gc.from_numpy(k * x.detach().numpy() ** 3)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return gc.from_numpy(3 * ctx.k * x.detach().numpy() ** 2 * g.numpy()), None


class Detected(Cube):
    """The same, of which nobody says that it is opaque."""

    opaque = False


@pytest.mark.parametrize("function", [Cube, Detected])
def test_custom_functions_of_numpy(function):
    def f(x, w):
        h = function.apply(gc.tanh(x @ w), 2.0)
        return (h * h).sum()

    gc.manual_seed(0)
    x, w = gc.randn(4, 3, dtype=gc.float64), gc.randn(3, 5, dtype=gc.float64, requires_grad=True)
    expected = f(x, w)
    expected.backward()
    gradient, w.grad = w.grad, None
    compiled = gc.compile(f)
    for _ in range(2):
        found = compiled(x, w)
        found.backward()
        np.testing.assert_allclose(found.item(), expected.item(), rtol=1e-12)
        np.testing.assert_allclose(w.grad.numpy(), gradient.numpy(), rtol=1e-10)
        w.grad = None
    with gc.no_grad():
        np.testing.assert_allclose(compiled(x, w).item(), expected.item(), rtol=1e-12)


def test_two_calls_in_flight_keep_apart_what_they_saved():
    compiled = gc.compile(lambda x: Cube.apply(x, 1.0).sum())
    a = gc.tensor([1.0, 2.0], requires_grad=True)
    b = gc.tensor([3.0, 4.0], requires_grad=True)
    first, second = compiled(a), compiled(b)
    first.backward()
    second.backward()
    assert a.grad.tolist() == [3, 12] and b.grad.tolist() == [27, 48]


def test_a_graph_that_is_kept_runs_backward_twice():
    compiled = gc.compile(lambda x: Cube.apply(x, 1.0).sum())
    a = gc.tensor([1.0, 2.0], requires_grad=True)
    value = compiled(a)
    value.backward(retain_graph=True)
    value.backward()
    assert a.grad.tolist() == [6, 24]
    with pytest.raises(GradientError):
        value.backward()


def test_training_steps_and_training_functions():
    def trained(kind):
        gc.manual_seed(0)
        net = nn.Linear(3, 5).double()
        optimizer = gc.optim.SGD(net.parameters(), lr=0.01)
        x, y = gc.randn(4, 3, dtype=gc.float64), gc.zeros(4, 5, dtype=gc.float64)

        def loss_of(output, y):
            return F.mse_loss(Cube.apply(output, 1.0), y)

        def train(x, y):
            optimizer.zero_grad()
            loss = loss_of(net(x), y)
            loss.backward()
            optimizer.step()
            return loss

        step = {"step": gc.compile_step(net, loss_of, optimizer), "train": gc.compile(train), "eager": train}[kind]
        return [step(x, y).item() for _ in range(4)]

    expected = trained("eager")
    np.testing.assert_allclose(trained("step"), expected, rtol=1e-10)
    np.testing.assert_allclose(trained("train"), expected, rtol=1e-10)


class Instance(gc.autograd.Function):
    """The old style: an instance for each call."""

    def __init__(self, power):
        self.power = power

    def forward(self, x):
        self.save_for_backward(x)
        return gc.from_numpy(x.detach().numpy() ** self.power)

    def backward(self, g):
        (x,) = self.saved_tensors
        return gc.from_numpy(self.power * x.detach().numpy() ** (self.power - 1) * g.numpy())


def test_instances_of_functions():
    compiled = gc.compile(lambda x: Instance(2)(x).sum())
    x = gc.tensor([1.0, 3.0], requires_grad=True)
    for _ in range(2):
        x.grad = None
        compiled(x).backward()
        assert x.grad.tolist() == [2, 6]


def test_exports_and_loops_refuse_them_by_name(tmp_path):
    class Rounded(gc.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return gc.from_numpy(np.rint(x.numpy()))

        @staticmethod
        def backward(ctx, g):
            return g

    for build in (
        lambda: gc.export(Rounded.apply, gc.ones(3), path=tmp_path / "a.gcm"),
        lambda: gc.trace(Rounded.apply, gc.ones(3)),
        lambda: gc.compile(lambda x: gc.scan(lambda c, v: (c + Rounded.apply(v), v), x[0], x))(gc.ones(2, 3)),
    ):
        with pytest.raises(TraceError, match="Rounded runs in Python") as caught:
            build()
        assert "numpy() needs the values" in caught.value.where
