"""Hooks run at each call of compiled code: the same events, in the same order, with the same numbers."""

from __future__ import annotations

import random

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import GradientError, HookError
from graphc.nn import functional as F
from graphc.nn.compiled_hooks import observer
from graphc.nn.modules.module import register_module_forward_hook

CALLS = 5


class Net(nn.Module):
    """Nested, with a module that is called twice, a residual branch, dropout and batch norm."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.block = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Dropout(0.2))
        self.norm = nn.BatchNorm1d(8)
        self.last = nn.Linear(8, 2)

    def forward(self, x):
        h = gc.tanh(self.first(x))
        h = h + self.block(h)
        h = self.norm(h + self.block(h))
        return self.last(h)


def number(tensor):
    return None if tensor is None else round(float(tensor.sum().item()), 9) + 0.0


def watch(net, log):
    """Gives all kinds of hooks to all modules."""
    for name, module in net.named_modules():
        add = [
            module.register_forward_pre_hook(lambda m, a, n=name: log.append(("pre", n, number(a[0])))),
            module.register_forward_hook(lambda m, a, o, n=name: log.append(("forward", n, number(a[0]), number(o)))),
            module.register_forward_hook(
                lambda m, a, k, o, n=name: log.append(("with kwargs", n, len(k), number(o))), with_kwargs=True
            ),
            module.register_full_backward_pre_hook(lambda m, g, n=name: log.append(("backward pre", n, number(g[0])))),
            module.register_full_backward_hook(
                lambda m, gi, go, n=name: log.append(("backward", n, number(gi[0]), number(go[0])))
            ),
        ]
        assert len(add) == 5


def events(mode, setup, calls=CALLS):
    """Return the events that hooks of a model in training saw, and the losses."""
    gc.manual_seed(0)
    net, log = Net().double(), []
    watch(net, log)
    setup(net, log)
    optimizer = gc.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    x, y = gc.randn(3, 4, dtype=gc.float64, requires_grad=mode in ("eager", "compile")), gc.tensor([0, 1, 0])
    model = gc.compile(net) if mode == "compile" else net

    def train(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    step = gc.compile_step(net, F.cross_entropy, optimizer) if mode == "step" else train
    step = gc.compile(train) if mode == "function" else step
    return log, [step(x, y).item() for _ in range(calls)]


def replacing(net, log):
    net.first.register_forward_hook(lambda m, a, o: o * 2)
    net.block.register_forward_pre_hook(lambda m, a: (a[0] + 1,))
    net.block.register_full_backward_hook(lambda m, gi, go: (gi[0] * 0.5,))
    net.last.register_full_backward_pre_hook(lambda m, go: (go[0] * 3,))


def parameters_too(net, log):
    for name, parameter in net.named_parameters():
        parameter.register_hook(lambda g, n=name: log.append(("parameter", n, number(g))))
    net.last.weight.register_hook(lambda g: g * 0.25)


def accumulating(net, log):
    net.last.bias.register_post_accumulate_grad_hook(lambda p: log.append(("accumulated", number(p.grad))))
    net.first.weight.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.5))


def test_hooks_after_accumulation_in_training_functions():
    results = []
    for wrap in (lambda function: function, gc.compile):
        gc.manual_seed(0)
        net, log = nn.Linear(3, 2).double(), []
        net.weight.register_post_accumulate_grad_hook(lambda p, log=log: log.append(p.grad.sum().item()))
        net.weight.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.5))
        optimizer = gc.optim.SGD(net.parameters(), lr=0.1)

        def train(x, net=net, optimizer=optimizer):
            optimizer.zero_grad()
            for chunk in (x, x * 2):
                net(chunk).square().sum().backward()
            optimizer.step()

        step = wrap(train)
        for i in range(3):
            step(gc.full((2, 3), float(i + 1), dtype=gc.float64))
        results.append([*log, *net.weight.detach().numpy().ravel()])
    assert len(results[0]) == 6 + 6
    np.testing.assert_allclose(results[1], results[0], rtol=1e-12)


def looking(net, log):
    """Add no further hooks."""


@pytest.mark.filterwarnings("ignore:full backward hook")
@pytest.mark.parametrize(
    ("mode", "setup", "in_order"),
    [
        *((mode, setup, True) for mode in ("compile", "step", "function") for setup in (looking, replacing)),
        ("function", parameters_too, True),
        # These run when the whole gradient is there.
        *((mode, parameters_too, False) for mode in ("step", "compile")),
        ("step", accumulating, False),
    ],
)
def test_the_same_events_as_in_eager_mode(mode, setup, in_order):
    expected, losses = events("eager" if mode == "compile" else "plain", setup)
    events_seen, same = events(mode, setup)
    assert len(expected) > 100 and sorted(map(str, events_seen)) == sorted(map(str, expected))
    assert events_seen == expected or not in_order
    np.testing.assert_allclose(same, losses, rtol=1e-12)


class Hooked(nn.Module):
    def __init__(self, log):
        super().__init__()
        self.layer, self.log = nn.Linear(3, 3), [log]

    def forward(self, x):
        h = self.layer(x)
        h.register_hook(lambda g, log=self.log[0]: log.append(number(g)))
        h.register_hook(lambda g: g * 2)
        return gc.tanh(h)


def test_hooks_of_tensors_inside():
    results = []
    for compiled in (False, True):
        gc.manual_seed(0)
        log = []
        net = Hooked(log).double()
        model = gc.compile(net) if compiled else net
        for _ in range(3):
            net.zero_grad()
            model(gc.ones(2, 3, dtype=gc.float64)).sum().backward()
        results.append((log, net.layer.weight.grad.numpy()))
    assert results[0][0] == results[1][0] and len(results[0][0]) == 3
    np.testing.assert_allclose(results[1][1], results[0][1], rtol=1e-12)


def test_what_a_hook_keeps_stays_as_it_was():
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    outputs = []
    net[1].register_forward_hook(lambda m, a, o: outputs.append(o.detach()))
    compiled = gc.compile(net)
    inputs = [gc.full((2, 3), float(i)) for i in range(3)]
    with gc.no_grad():
        for x in inputs:
            compiled(x)
        for x, tensor in zip(inputs, outputs, strict=True):
            np.testing.assert_allclose(tensor.numpy(), gc.tanh(net[0](x)).numpy(), rtol=1e-5, atol=1e-6)


def test_what_a_hook_gets_is_read_only():
    net = nn.Linear(3, 3)
    net.register_forward_hook(lambda m, a, o: o.add_(1))
    with gc.no_grad(), pytest.raises(Exception, match="read-only"):
        gc.compile(net)(gc.ones(1, 3))


def test_replacements_that_compiled_code_cannot_take():
    net = nn.Linear(3, 3)
    compiled = gc.compile(net)
    x = gc.ones(1, 3)
    with net.register_forward_hook(lambda m, a, o: o[:, :2]), pytest.raises(Exception, match=r"f32\[1, 2\]"):
        compiled(x)
    with net.register_forward_hook(lambda m, a, o: (o, o)), pytest.raises(HookError, match="differs in structure"):
        compiled(x)
    with net.register_forward_hook(lambda m, a, o: o + a[0]), pytest.raises(GradientError, match=r"hooks\.traced"):
        compiled(gc.ones(1, 3, requires_grad=True))
    np.testing.assert_allclose(compiled(x).detach().numpy(), net(x).detach().numpy(), rtol=1e-6)


def test_traced_hooks_cost_no_call():
    net = nn.Linear(3, 3)
    observed = []

    @gc.hooks.traced
    def double(module, args, output):
        observed.append(1) if isinstance(output._data, np.ndarray) else None
        return output * 2 + args[0]

    net.register_forward_hook(double)
    compiled = gc.compile(net)
    x = gc.ones(2, 3, requires_grad=True)
    for _ in range(3):
        result = compiled(x)
    assert not observed
    np.testing.assert_allclose(result.detach().numpy(), net(x).detach().numpy(), rtol=1e-6)


def test_hooks_that_remove_themselves_and_hooks_of_all_modules():
    net, log = nn.Sequential(nn.Linear(3, 3), nn.ReLU()), []
    compiled = gc.compile(net)
    handle = net[0].register_forward_hook(lambda m, a, o: (log.append("once"), handle.remove())[0])
    with gc.no_grad():
        compiled(gc.ones(1, 3))
        compiled(gc.ones(1, 3))
        assert log == ["once"]
        with register_module_forward_hook(lambda m, a, o: log.append(type(m).__name__)):
            compiled(gc.ones(1, 3))
        compiled(gc.ones(1, 3))
    assert log == ["once", "Linear", "ReLU", "Sequential"]


@pytest.mark.parametrize("register", ["register_forward_hook", "register_forward_pre_hook"])
def test_a_hook_that_was_removed_earlier_in_the_same_call_is_not_called_again(register):
    logs = []
    for compiled in (False, True):
        layer, log, handles = nn.Linear(3, 3), [], []
        net = nn.Sequential(layer, layer)

        def alone(*observed, log=log, handles=handles):
            log.append("once")
            for handle in handles:
                handle.remove()

        handles.append(getattr(layer, register)(alone))
        handles.append(getattr(layer, register)(lambda *seen, log=log: log.append("neighbour")))
        model = gc.compile(net) if compiled else net
        with gc.no_grad():
            model(gc.ones(1, 3))
            model(gc.ones(1, 3))
        logs.append(log)
    assert logs[0] == logs[1] == ["once", "neighbour"]


def test_errors_of_hooks_are_raised_as_they_are():
    net = nn.Linear(3, 3)
    net.register_forward_hook(lambda m, a, o: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        gc.compile(net)(gc.ones(1, 3))


def sequence_of_changes(seed, compiled, steps=30):
    """Events of random additions and removals of hooks between calls."""
    rng = random.Random(seed)
    gc.manual_seed(seed)
    net, log, handles = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2)).double(), [], []
    model = gc.compile(net) if compiled else net
    x = gc.ones(1, 2, dtype=gc.float64, requires_grad=True)
    for step in range(steps):
        kind = rng.choice(["forward", "pre", "backward", "remove", "call", "call", "replace"])
        position = rng.randrange(3)
        module = net[position]
        if kind == "forward":
            hook = module.register_forward_hook(lambda m, a, o, s=step: log.append(("forward", s, number(o))))
            handles.append(hook)
        elif kind == "pre":
            hook = module.register_forward_pre_hook(lambda m, a, s=step: log.append(("pre", s, number(a[0]))))
            handles.append(hook)
        elif kind == "backward":
            hook = module.register_full_backward_hook(lambda m, i, o, s=step: log.append(("back", s, number(o[0]))))
            handles.append(hook)
        elif kind == "replace":
            handles.append(module.register_forward_hook(lambda m, a, o: o * 1.5))
        elif kind == "remove" and handles:
            handles.pop(rng.randrange(len(handles))).remove()
        elif kind == "call":
            out = model(x).sum()
            out.backward()
            log.append(("call", number(out), number(x.grad)))
    return log


@pytest.mark.sampled(50)
@pytest.mark.parametrize("seed", range(12))
def test_random_sequences_of_adding_removing_and_calling(seed):
    assert sequence_of_changes(seed, True) == sequence_of_changes(seed, False)


def test_observers_are_left_out_where_code_cannot_call_them():
    net, observed, left_out = nn.Linear(2, 2), [], []
    net.register_forward_hook(observer(lambda module, args, output: observed.append(output.shape), left_out.append))
    net.register_forward_pre_hook(observer(lambda module, args: observed.append("before")))
    net.register_full_backward_hook(observer(lambda module, inputs, outputs: observed.append("backward")))
    looped = gc.compile(lambda x: gc.scan(lambda h, v: (net(h) + v, h), x[0], x)[0].sum())
    x = gc.randn(3, 2, requires_grad=True)
    looped(x).backward()
    assert not observed and left_out and all(module is net for module in left_out)
    gc.trace(net, gc.ones(1, 2))
    assert not observed
    gc.compile(net)(gc.ones(1, 2, requires_grad=True)).sum().backward()
    assert observed == ["before", (1, 2), "backward"]
