"""Hooks of modules in compiled calls: forward hooks are part of the trace, full backward hooks are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import TraceError


def network() -> Any:
    graphc.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))


def run(function: Any, net: Any) -> list[np.ndarray]:
    """The output, and the gradients of the input and of all parameters."""
    x = graphc.tensor(np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)).requires_grad_()
    net.zero_grad()
    y = function(x)
    y.sum().backward()
    return [np.array(t) for t in (y.detach(), x.grad, *[p.grad for p in net.parameters()])]


def assert_compiled_as_eager(net: Any) -> None:
    for a, b in zip(run(graphc.compile(net), net), run(net, net), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_forward_hooks_are_traced_and_run_once():
    net = network()
    calls = []

    def double(module: Any, args: Any, output: Any) -> Any:
        calls.append(tuple(output.shape))
        return output * 2

    net[0].register_forward_hook(double)
    net[1].register_forward_pre_hook(lambda module, args: args[0] + 1)
    compiled = graphc.compile(net)
    first = run(compiled, net)
    assert calls == [(4, 3)]
    run(compiled, net)
    assert calls == [(4, 3)]
    for a, b in zip(first, run(net, net), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_backward_pre_hooks_are_traced():
    net = network()
    net[2].register_full_backward_pre_hook(lambda module, go: (go[0] * 3,))
    assert_compiled_as_eager(net)


def test_full_backward_hooks_are_refused():
    net = network()
    handle = net[1].register_full_backward_hook(lambda module, gi, go: None)
    with pytest.raises(TraceError, match="full backward hook of ReLU cannot run in a traced call"):
        graphc.compile(net)(graphc.ones(4, 3))
    with graphc.no_grad():
        graphc.compile(net)(graphc.ones(4, 3))
    handle.remove()
    assert_compiled_as_eager(net)
