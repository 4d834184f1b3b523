"""Note 004: Parameter, categories of functionals, initial values, functionals and layers, the backward graph."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc import nn
from graphc.nn.parallel import data_parallel
from graphc.nn.parameter import Parameter

# ---- Parameter


def test_a_parameter_is_a_tensor_that_requires_gradients():
    assert issubclass(Parameter, graphc.Tensor)
    assert list(inspect.signature(Parameter).parameters)[:2] == ["data", "requires_grad"]
    p = Parameter(graphc.ones(2))
    assert p.requires_grad and p.is_leaf and Parameter().numel() == 0
    assert not Parameter(graphc.ones(2), requires_grad=False).requires_grad
    assert "Parameter containing" in repr(p)


def test_a_hidden_state_is_no_parameter():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.RNNCell(2, 3)
            self.hidden = graphc.zeros(1, 3)
            self.gain = Parameter(graphc.ones(1))

        def forward(self, x):
            self.hidden = self.cell(x, self.hidden)
            return self.hidden * self.gain

    net = Recurrent()
    net(graphc.ones(1, 2))
    names = [n for n, _ in net.named_parameters()]
    assert "gain" in names and not any(n == "hidden" for n in names)
    assert len(names) == 5


# ---- one function of every category


X = graphc.tensor(np.linspace(-1, 1, 32, dtype=np.float32).reshape(1, 2, 4, 4))
CATEGORIES = {
    "convolution": (lambda x: F.conv2d(x, graphc.ones(3, 2, 3, 3)), (1, 3, 2, 2)),
    "pooling": (lambda x: F.max_pool2d(x, 2), (1, 2, 2, 2)),
    "activation": (F.relu, (1, 2, 4, 4)),
    "linear": (lambda x: F.linear(x, graphc.ones(5, 4)), (1, 2, 4, 5)),
    "sparse": (lambda x: F.embedding(graphc.tensor([[0, 2]]), x[0, 0]), (1, 2, 4)),
    "distance": (lambda x: F.pairwise_distance(x[0, 0], x[0, 1]), (4,)),
    "loss": (lambda x: F.mse_loss(x, graphc.zeros_like(x)), ()),
    "vision": (lambda x: F.pixel_shuffle(F.pad(x, (1, 1, 1, 1))[:, :1].expand(1, 4, 6, 6), 2), (1, 1, 12, 12)),
    "data parallel": (lambda x: data_parallel(nn.Flatten(), x.expand(4, 2, 4, 4), device_ids=[0, 1]), (4, 32)),
}


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_category_has_functions_with_gradients(category):
    function, shape = CATEGORIES[category]
    x = X.clone().requires_grad_()
    y = function(x)
    assert y.shape == shape
    y.sum().backward()
    assert x.grad.shape == x.shape


def test_data_parallel_gives_the_results_and_gradients_of_one_call():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    x = graphc.randn(6, 3)
    whole = net(x)
    whole.sum().backward()
    expected = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    parts = nn.DataParallel(net, device_ids=[0, 1, 2])(x)
    parts.sum().backward()
    assert graphc.allclose(parts, whole, atol=1e-6)
    for p, e in zip(net.parameters(), expected, strict=True):
        assert graphc.allclose(p.grad, e, atol=1e-5)


# ---- initial values


@pytest.mark.parametrize("mode", ["fan_in", "fan_out"])
@pytest.mark.parametrize(("nonlinearity", "a"), [("relu", 0), ("leaky_relu", 0), ("leaky_relu", 0.5)])
def test_kaiming_normal_has_the_deviation_of_the_paper(mode, nonlinearity, a):
    graphc.manual_seed(0)
    w = graphc.empty(120, 80)
    assert nn.init.kaiming_normal_(w, a=a, mode=mode, nonlinearity=nonlinearity) is w
    fan = 80 if mode == "fan_in" else 120
    gain = math.sqrt(2) if nonlinearity == "relu" else math.sqrt(2 / (1 + a**2))
    assert float(w.std()) == pytest.approx(gain / math.sqrt(fan), rel=0.05)
    assert float(w.mean()) == pytest.approx(0, abs=0.01)


def test_the_calls_of_the_note():
    w = graphc.empty(3, 5)
    nn.init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu")
    assert w.abs().sum() > 0
    assert nn.init.zeros_(w).tolist() == [[0.0] * 5] * 3
    assert nn.init.ones_(w).tolist() == [[1.0] * 5] * 3
    defaults = {n: p.default for n, p in inspect.signature(nn.init.kaiming_normal_).parameters.items()}
    assert (defaults["a"], defaults["mode"], defaults["nonlinearity"]) == (0, "fan_in", "leaky_relu")


# ---- nn against nn.functional


class ByLayer(nn.Module):
    def __init__(self, conv):
        super().__init__()
        self.conv = conv

    def forward(self, x):
        return self.conv(x)


class ByFunction(nn.Module):
    def __init__(self, conv):
        super().__init__()
        self.weight = conv.weight
        self.bias = conv.bias

    def forward(self, x):
        return F.relu(F.conv2d(x, self.weight, self.bias))


def test_a_layer_and_its_functional_share_parameters_and_results():
    conv = nn.Conv2d(1, 6, 3)
    a, b = ByLayer(conv), ByFunction(conv)
    x = graphc.randn(2, 1, 5, 5)
    assert graphc.equal(F.relu(a(x)), b(x))
    assert [n for n, _ in a.named_parameters()] == ["conv.weight", "conv.bias"]
    assert [n for n, _ in b.named_parameters()] == ["weight", "bias"]
    assert b.weight is conv.weight
    a(x).sum().backward()
    assert b.weight.grad is conv.weight.grad is not None


def test_both_compile_to_the_same_numbers():
    conv = nn.Conv2d(1, 6, 3)
    x = graphc.randn(2, 1, 5, 5)
    found = graphc.compile(ByFunction(conv))(x)
    np.testing.assert_allclose(found.detach().numpy(), F.relu(ByLayer(conv)(x)).detach().numpy(), rtol=1e-5, atol=1e-6)


# ---- the backward graph


def test_operations_are_tracked_and_walked_backwards_by_the_chain_rule():
    x = graphc.tensor(2.0, requires_grad=True)
    y = graphc.sin(x * x) * graphc.exp(x)
    y.backward()
    expected = math.exp(2) * (math.cos(4) * 4 + math.sin(4))
    assert x.grad.item() == pytest.approx(expected, rel=1e-5)
