"""Data parallelism on one machine's memory."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.nn.parallel import data_parallel


@pytest.mark.parametrize("devices", [None, [0], [0, 1], [0, 1, 2]])
def test_parts_give_the_whole(devices: list[int] | None):
    net = nn.Linear(3, 2)
    x = graphc.randn(7, 3)
    net(x).sum().backward()
    expected, gradient = net(x).detach().numpy(), net.weight.grad.numpy().copy()
    net.zero_grad()
    y = data_parallel(net, x, devices)
    y.sum().backward()
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(net.weight.grad.numpy(), gradient, rtol=1e-5)


class Many(nn.Module):
    def forward(self, x, number, *, scale):
        return {"sum": x.sum() * scale, "pair": (x, x * number)}


def test_nested_outputs_and_other_arguments():
    x = graphc.arange(6.0).reshape(6, 1)
    out = data_parallel(Many(), (x, 2), [0, 1], module_kwargs={"scale": 10})
    assert out["sum"].tolist() == [30, 120]
    assert out["pair"][1].tolist() == (x * 2).tolist()


def test_outputs_that_cannot_be_joined():
    class Text(nn.Module):
        def forward(self, x):
            return "text"

    with pytest.raises(TypeError, match="outputs of type str cannot be joined"):
        data_parallel(Text(), graphc.zeros(4), [0, 1])


def test_module_form():
    net = nn.DataParallel(nn.Linear(3, 2), [0, 1])
    assert list(net.state_dict()) == ["module.weight", "module.bias"]
    x = graphc.randn(5, 3)
    np.testing.assert_allclose(net(x).detach().numpy(), net.module(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_parts_run_in_threads_of_their_own_where_they_may():
    seen = set()

    class Watch(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x):
            seen.add(threading.current_thread().name)
            return self.linear(x)

    net = Watch()
    x = graphc.ones(4, 2)
    data_parallel(net, x, device_ids=[0, 1]).sum().backward()
    assert not any("MainThread" in name for name in seen)
    assert net.linear.bias.grad.tolist() == [4, 4]
    seen.clear()
    net.register_forward_hook(lambda *a: None)
    data_parallel(net, x, device_ids=[0, 1])
    assert seen == {"MainThread"}
    with graphc.no_grad():
        assert not data_parallel(nn.Linear(2, 2), x, device_ids=[0, 1]).requires_grad
