"""Hooks in compiled calls: no program is made twice for them, those that are added later are called or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import TraceError
from graphc.nn import module_hooks


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


def test_forward_hooks_replace_values():
    net = network()
    net[0].register_forward_hook(lambda module, args, output: output * 2)
    net[1].register_forward_pre_hook(lambda module, args: args[0] + 1)
    compiled = graphc.compile(net)
    for _ in range(2):
        for a, b in zip(run(compiled, net), run(net, net), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert len(compiled.variants) == 1


@pytest.mark.parametrize("kind", ["compile", "step", "method"])
def test_hooks_added_and_removed_later_are_traced_again(kind: str):
    def changes(act: Any) -> Any:
        yield act.register_forward_hook(lambda module, args, output: output * 2)
        yield act.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
        yield act.register_full_backward_pre_hook(lambda module, go: (go[0] * 3,))
        yield module_hooks.register_module_forward_hook(lambda module, args, output: output + 1)

    def steps(net: Any, function: Any) -> list[np.ndarray]:
        results, handles = [], []
        for handle in (None, *changes(net[1])):
            results += function()
            handles += [handle] if handle else []
        for handle in handles:
            handle.remove()
            results += function()
        return results

    net, twin = network(), network()
    x = graphc.ones(4, 3)
    if kind == "step":
        step, slow = (
            compile_or_not(n, graphc.optim.SGD(n.parameters(), lr=0.1))
            for n, compile_or_not in ((net, graphc_step), (twin, eager_step))
        )
        result, expected = steps(net, lambda: [step(x)]), steps(twin, lambda: [slow(x)])
    else:
        fast = graphc.compile(net) if kind == "compile" else net
        if kind == "method":
            net.compile()
        result, expected = steps(net, lambda: run(fast, net)), steps(twin, lambda: run(twin, twin))
    for a, b in zip(result, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def graphc_step(net: Any, optimizer: Any) -> Any:
    step = graphc.compile_step(net, lambda y: y.sum(), optimizer)
    return lambda x: np.array(step(x))


def eager_step(net: Any, optimizer: Any) -> Any:
    def step(x: Any) -> np.ndarray:
        optimizer.zero_grad()
        loss = net(x).sum()
        loss.backward()
        optimizer.step()
        return np.array(loss.detach())

    return step


def test_full_backward_hooks_added_later_are_called():
    net, seen = network(), []
    compiled = graphc.compile(net)
    run(compiled, net)
    handle = net[1].register_full_backward_hook(lambda m, gi, go: seen.append(type(m).__name__))
    run(compiled, net)
    assert seen == ["ReLU"]
    handle.remove()
    run(compiled, net)
    assert seen == ["ReLU"]


def test_backward_hooks_of_the_old_kind_added_later_are_refused():
    net = network()
    compiled = graphc.compile(net)
    run(compiled, net)
    handle = compiled.register_backward_hook(lambda m, gi, go: None)
    with pytest.raises(TraceError, match="hook"):
        run(compiled, net)
    handle.remove()
    run(compiled, net)


def test_hooks_of_tensors_inside_are_called():
    def function(x: Any) -> Any:
        y = x * 2
        y.register_hook(lambda g: g * 5)
        return y.sum()

    compiled = graphc.compile(function)
    for _ in range(2):
        x = graphc.ones(3).requires_grad_()
        compiled(x).backward()
        assert x.grad.tolist() == [10, 10, 10]
    with graphc.no_grad():
        assert graphc.compile(lambda x: x * 2)(x).tolist() == [2, 2, 2]


def test_hooks_of_tensors_that_were_used_before_are_refused():
    def function(x: Any) -> Any:
        y = x * 2
        z = y.sum()
        y.register_hook(lambda g: g * 5)
        return z + y.sum()

    with pytest.raises(TraceError, match="already used") as caught:
        graphc.compile(function)(graphc.ones(3).requires_grad_())
    assert "test_hooks_compiled.py" in str(caught.value)


def test_hooks_within_a_gradient_that_is_traced_are_called():
    def gradient(x: Any) -> Any:
        x = x.detach().requires_grad_()
        y = x * 2
        y.register_hook(lambda g: g * 5)
        return graphc.autograd.grad(y.sum(), x)[0]

    assert graphc.compile(gradient)(graphc.ones(2)).tolist() == gradient(graphc.ones(2)).tolist() == [10, 10]


def test_hooks_of_tensors_outside_are_called_in_a_gradient_that_is_traced():
    p, factor = nn.Parameter(graphc.ones(2)), [3.0]

    def gradient(x: Any) -> Any:
        return graphc.autograd.grad((p * x).sum(), p)[0]

    fast, x = graphc.compile(gradient), graphc.full((2,), 2.0)
    assert fast(x).tolist() == gradient(x).tolist() == [2, 2]
    handle = p.register_hook(lambda g: g * factor[0])
    assert fast(x).tolist() == gradient(x).tolist() == [6, 6]
    factor[0] = 5.0
    assert fast(x).tolist() == gradient(x).tolist() == [10, 10]
    handle.remove()
    assert fast(x).tolist() == gradient(x).tolist() == [2, 2]
