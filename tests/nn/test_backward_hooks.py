"""Full backward hooks: what they see, what they may replace, and when they run."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import HookError
from graphc.nn import module_hooks


class Mix(nn.Module):
    """Two inputs, two outputs."""

    def forward(self, x, factor, y):
        return x * factor, x + y


def leaf(*values: float):
    return graphc.tensor(list(values)).requires_grad_()


def numbers(grads):
    return tuple(None if g is None else g.tolist() for g in grads)


def test_sees_gradients_of_inputs_and_outputs():
    m = Mix()
    seen = []
    m.register_full_backward_hook(lambda module, gi, go: seen.append((module, numbers(gi), numbers(go))))
    x, y = leaf(2.0), leaf(3.0)
    a, b = m(x, 5.0, y)
    (a * 2 + b * 7).sum().backward()
    assert seen == [(m, ([17.0], None, [7.0]), ([2.0], [7.0]))]
    assert x.grad.tolist() == [17] and y.grad.tolist() == [7]


def test_may_replace_the_gradients_of_inputs():
    m = nn.Linear(2, 1)
    m.register_full_backward_hook(lambda module, gi, go: (gi[0] * 10,))
    m.register_full_backward_hook(lambda module, gi, go: (gi[0] + 1,))
    x = leaf(1.0, 1.0)
    m(x).sum().backward()
    expected = m.weight.detach().numpy()[0] * 10 + 1
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6)
    np.testing.assert_array_equal(m.weight.grad.numpy(), [[1, 1]])


def test_pre_hook_may_replace_the_gradients_of_outputs():
    m = nn.Linear(2, 1, bias=False)
    seen = []
    m.register_full_backward_pre_hook(lambda module, go: (go[0] * 3,))
    m.register_full_backward_hook(lambda module, gi, go: seen.append(go[0].item()))
    x = leaf(1.0, 2.0)
    m(x).sum().backward()
    assert seen == [3.0]
    assert m.weight.grad.tolist() == [[3, 6]]


def test_order_of_hooks():
    m = nn.Identity()
    order = []

    def note(name):
        return lambda *args: order.append(name)

    with (
        module_hooks.register_module_full_backward_pre_hook(note("all pre")),
        module_hooks.register_module_full_backward_hook(note("all")),
    ):
        m.register_full_backward_pre_hook(note("pre 2"))
        m.register_full_backward_pre_hook(note("pre 1"), prepend=True)
        m.register_full_backward_hook(note("2"))
        m.register_full_backward_hook(note("1"), prepend=True)
        y = m(leaf(1.0))
    y.sum().backward()
    assert order == ["all pre", "pre 1", "pre 2", "all", "1", "2"]


def test_nested_modules_run_from_the_output_to_the_input():
    net = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU()))
    names = {id(m): name for name, m in net.named_modules()}
    order = []
    with module_hooks.register_module_full_backward_hook(lambda m, gi, go: order.append(names[id(m)])):
        y = net(leaf(1.0))
    y.sum().backward()
    assert order == ["1.0", "1", "0", ""]


def test_runs_at_the_outputs_when_no_input_requires_a_gradient():
    m = nn.Linear(2, 1)
    seen = []
    handle = m.register_full_backward_hook(lambda module, gi, go: seen.append((numbers(gi), numbers(go))))
    with pytest.warns(UserWarning, match="no input requires a gradient"):
        m(graphc.ones(1, 2)).sum().backward()
    assert seen == [((None,), ([[1.0]],))]
    handle.remove()
    m.register_full_backward_hook(lambda module, gi, go: go)
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="no input requires one"):
        m(graphc.ones(1, 2)).sum().backward()


def test_does_not_run_when_no_output_requires_a_gradient():
    m = nn.Identity()
    m.register_full_backward_hook(lambda *a: pytest.fail("called"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m(graphc.ones(1))
        with graphc.no_grad():
            m(leaf(1.0))


def test_wrong_number_of_gradients():
    m = Mix()
    handle = m.register_full_backward_hook(lambda module, gi, go: gi[:2])
    with pytest.raises(RuntimeError, match="returned 2 gradients of grad_input, expected 3"):
        sum(m(leaf(1.0), 1.0, leaf(1.0))).sum().backward()
    handle.remove()
    m.register_full_backward_pre_hook(lambda module, go: (go[0],))
    with pytest.raises(HookError, match="returned 1 gradients of grad_output, expected 2"):
        sum(m(leaf(1.0), 1.0, leaf(1.0))).sum().backward()


def test_outputs_keep_their_container():
    class Pair(nn.Module):
        def forward(self, x):
            return [x * 2, "text", x.detach()]

    m = Pair()
    seen = []
    m.register_full_backward_hook(lambda module, gi, go: seen.append(numbers(go)))
    out = m(leaf(1.0))
    assert isinstance(out, list) and out[1] == "text" and not out[2].requires_grad
    out[0].sum().backward()
    assert seen == [([1.0], None, None)]


def test_gradients_are_those_without_hooks():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    x = graphc.randn(5, 3).requires_grad_()
    net(x).sum().backward()
    expected = [x.grad.numpy().copy()] + [p.grad.numpy().copy() for p in net.parameters()]
    x.grad = None
    net.zero_grad()
    with module_hooks.register_module_full_backward_hook(lambda *a: None):
        net(x).sum().backward()
    for value, tensor in zip(expected, [x, *net.parameters()], strict=True):
        np.testing.assert_array_equal(tensor.grad.numpy(), value)


def test_old_backward_hooks_see_the_last_operation():
    m = nn.Linear(2, 1)
    seen = []
    m.register_backward_hook(lambda module, gi, go: seen.append((module, numbers(go))))
    y = m(leaf(1.0, 2.0))
    (y * 4).sum().backward()
    assert seen == [(m, ([4.0],))]


def test_old_backward_hooks_of_all_modules_find_the_first_tensor():
    class Nested(nn.Module):
        def forward(self, x):
            return {"text": 1, "out": [x * 2]}

    seen = []
    with module_hooks.register_module_backward_hook(lambda m, gi, go: seen.append(numbers(go))):
        Nested()(leaf(1.0))["out"][0].sum().backward()
        nn.Identity()(leaf(1.0)).sum().backward()
    assert seen == [([1.0],)]


def test_as_torch(torch):

    def run(lib, make, hook_of):
        net = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.ReLU(), lib.nn.Linear(4, 2))
        for i, parameter in enumerate(net.parameters()):
            parameter.data = make(np.random.default_rng(i).standard_normal(tuple(parameter.shape)))
        log = []
        for i, module in enumerate(net):
            module.register_full_backward_hook(hook_of(i, log))
        x = make(np.random.default_rng(9).standard_normal((5, 3))).requires_grad_()
        net(x).sum().backward()
        return log, x.grad.tolist()

    def hook_of(i, log):
        def hook(module, gi, go):
            log.append((i, gi[0].tolist(), go[0].tolist()))
            return (gi[0] * 2,)

        return hook

    ours, x = run(graphc, graphc.tensor, hook_of)
    theirs, expected = run(torch, torch.tensor, hook_of)
    assert [entry[0] for entry in ours] == [entry[0] for entry in theirs]
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a[1], b[1])
        np.testing.assert_allclose(a[2], b[2])
    np.testing.assert_allclose(x, expected)
