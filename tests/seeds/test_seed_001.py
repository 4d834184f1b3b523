"""Note 001, a reprint of 000: its summary as a program, run eagerly, traced and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.autograd import Function, Variable
from graphc.errors import TraceError


class Scale(Function):
    """An operation of one's own: forward and backward, and what is no tensor in ``__init__``."""

    def __init__(self, factor):
        self.factor = factor

    def forward(self, x):
        return x * self.factor

    def backward(self, grad):
        return grad * self.factor


class Layer(nn.Module):
    """A module joins variables and a function."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(graphc.tensor([[1.0, -1.0], [0.5, 2.0]]))
        self.register_buffer("shift", graphc.tensor([1.0, 2.0]))

    def forward(self, x):
        return Scale(3.0)(x @ self.weight) + self.shift


def results(call):
    """The output, and the gradients of the input and of the weight."""
    net = Layer()
    x = graphc.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = call(net)(x)
    (y * y).sum().backward()
    return [y.detach().numpy(), x.grad.numpy(), net.weight.grad.numpy()]


def test_compiled_and_eager_agree():
    for a, b in zip(results(lambda net: net), results(graphc.compile), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_values_and_gradients_by_hand():
    y, dx, dw = results(lambda net: net)
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    w = np.array([[1.0, -1.0], [0.5, 2.0]])
    expected = 3 * x @ w + [1, 2]
    np.testing.assert_allclose(y, expected)
    np.testing.assert_allclose(dx, 6 * expected @ w.T)
    np.testing.assert_allclose(dw, 6 * x.T @ expected)


def test_backward_goes_from_results_to_leaves():
    order = []
    x = Variable(graphc.ones(1), requires_grad=True)
    a = x * 2
    b = a + 1
    for name, t in (("x", x), ("a", a), ("b", b)):
        t.register_hook(lambda grad, name=name: order.append(name))
    (b * b).backward()
    assert order == ["b", "a", "x"]


def test_the_graph_can_be_walked_from_creator_to_creator():
    x = Variable(graphc.ones(1), requires_grad=True)
    y = (x * 2) + x
    names = []
    open_ = [y.creator]
    while open_:
        node = open_.pop()
        names.append(node.name())
        open_ += [n for n, _ in node.next_functions if n is not None]
    assert names.count("AccumulateGrad") == 2 and {"AddBackward", "MulBackward"} <= set(names)


def test_hooks_watch_a_traced_model_too():
    net, seen = Layer(), []
    net.register_forward_hook(lambda m, args, output: seen.append(tuple(output.shape)))
    graphc.trace(net, graphc.ones(2, 2))
    assert seen == [(2, 2)]


def test_what_asks_for_values_is_refused_with_a_remedy_under_trace():
    class Branching(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    assert Branching()(graphc.ones(2)).tolist() == [1, 1]
    with pytest.raises(TraceError, match="from "):
        graphc.trace(Branching(), graphc.ones(2))
