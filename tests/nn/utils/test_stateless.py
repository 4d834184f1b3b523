"""Calls of modules with parameters that are arguments."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import ArgumentError, StateDictError
from graphc.func import functional_call, grad


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.b = nn.Linear(2, 2)
        self.b.weight = self.a.weight

    def forward(self, x, scale=1.0):
        return self.b(self.a(x)) * scale


def test_parameters_are_arguments():
    net = nn.Linear(2, 1)
    kept = net.weight
    weight = graphc.tensor([[1.0, 2.0]], requires_grad=True)
    out = functional_call(net, {"weight": weight, "bias": graphc.zeros(1)}, graphc.tensor([[3.0, 4.0]]))
    out.sum().backward()
    assert out.tolist() == [[11.0]] and weight.grad.tolist() == [[3.0, 4.0]]
    assert net.weight is kept and kept.grad is None


def test_gradients_of_the_function_compile():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    names = dict(net.named_parameters())

    def loss(parameters, x):
        return functional_call(net, parameters, (x,)).square().sum()

    x = graphc.randn(5, 3)
    found = graphc.compile(grad(loss))(names, x)
    net(x).square().sum().backward()
    for name, parameter in net.named_parameters():
        np.testing.assert_allclose(found[name].detach().numpy(), parameter.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_buffers_are_written_where_they_were_given():
    net = nn.BatchNorm1d(2)
    mean = graphc.zeros(2)
    functional_call(net, ({"running_mean": mean}, {}), (graphc.ones(3, 2),))
    assert mean.tolist() == pytest.approx([0.1, 0.1]) and net.running_mean.tolist() == [0, 0]


def test_tied_weights():
    net = Tied()
    x, eye = graphc.ones(1, 2), graphc.eye(2)
    zero = {"a.bias": graphc.zeros(2), "b.bias": graphc.zeros(2)}
    assert functional_call(net, zero | {"a.weight": eye}, x, {"scale": 2.0}).tolist() == [[2, 2]]
    alone = functional_call(net, zero | {"a.weight": eye}, x, tie_weights=False)
    assert graphc.allclose(alone, x @ net.b.weight.transpose(0, 1))
    with pytest.raises(ArgumentError, match="is tied to another tensor"):
        functional_call(net, {"a.weight": eye, "b.weight": eye * 2}, x)
    assert net.a.weight is net.b.weight


def test_errors():
    net = nn.Linear(2, 1)
    with pytest.raises(StateDictError, match=r"missing \['bias'\], unknown \['w'\]"):
        functional_call(net, {"weight": net.weight, "w": net.weight}, graphc.ones(1, 2), strict=True)
    functional_call(net, {"w": net.weight}, graphc.ones(1, 2))
    with pytest.raises(ArgumentError, match="in more than one dictionary"):
        functional_call(net, ({"weight": net.weight}, {"weight": net.weight}), graphc.ones(1, 2))
    with pytest.raises(ArgumentError, match="int is not a dictionary"):
        functional_call(net, (3,), graphc.ones(1, 2))


def test_states_are_stacked_for_vmap():
    nets = [nn.Linear(2, 3) for _ in range(4)]
    params, buffers = graphc.func.stack_module_state(nets)
    x = graphc.randn(5, 2)
    found = graphc.vmap(lambda p: graphc.func.functional_call(nets[0], p, (x,)))(params)
    assert found.shape == (4, 5, 3) and not buffers
    assert graphc.allclose(found[2], nets[2](x), atol=1e-6)
    found.sum().backward()
    assert params["weight"].grad.shape == (4, 3, 2)
    with pytest.raises(graphc.errors.ArgumentError, match="differ in class or mode"):
        graphc.func.stack_module_state([nets[0], nn.ReLU()])
