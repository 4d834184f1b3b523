"""Steps of optimizers inside of compiled functions: every rule, settings that change, hooks, refusals."""

from __future__ import annotations

import copy
import itertools
import sys

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.autograd.record import OpNode
from graphc.base.errors import GradientError, TraceError


def network(*sizes):
    layers = []
    for before, after in itertools.pairwise(sizes):
        layers += [nn.Linear(before, after), nn.Tanh()]
    return nn.Sequential(*layers[:-1]).double()


def trained(optimizer_of, change=lambda optimizer: None, steps=3):
    """Losses of a compiled training in which something changes after each step."""
    gc.manual_seed(0)
    net = network(6, 8, 1)
    optimizer = optimizer_of(net)

    def train(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for run in (train, gc.compile(train)):
        gc.manual_seed(0)
        start = network(6, 8, 1).state_dict()
        net.load_state_dict(start)
        optimizer = optimizer_of(net)
        results = []
        for _ in range(steps):
            results.append(run(gc.ones(2, 6, dtype=gc.float64)).item())
            change(optimizer)
        losses.append(results)
    return losses


OPTIMIZERS = [n for n in gc.optim.__all__ if isinstance(getattr(gc.optim, n), type) and n not in ("Optimizer", "LBFGS")]
OPTIMIZERS = [n for n in OPTIMIZERS if issubclass(getattr(gc.optim, n), gc.optim.Optimizer)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer(name):
    def parameters(net):
        return [p for p in net.parameters() if p.ndim == 2] if name == "Muon" else net.parameters()

    expected, result = trained(lambda net: getattr(gc.optim, name)(parameters(net), lr=1e-2))
    np.testing.assert_allclose(result, expected, rtol=1e-9)


def _rate(optimizer):
    optimizer.param_groups[0]["lr"] *= 0.5


def _rate_to_zero(optimizer):
    optimizer.param_groups[0]["lr"] = 0.0


def _nesterov(optimizer):
    optimizer.param_groups[0]["nesterov"] = True


def _load(optimizer):
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))


def _no_momentum(optimizer):
    optimizer.param_groups[0]["momentum"] = 0.5


@pytest.mark.parametrize("change", [_rate, _rate_to_zero, _nesterov, _load, _no_momentum])
def test_settings_that_change_between_calls(change):
    expected, result = trained(lambda net: gc.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), change, steps=5)
    np.testing.assert_allclose(result, expected, rtol=1e-10)


def test_groups_with_options_of_their_own():
    def groups(net):
        return [{"params": [net[0].weight], "weight_decay": 0.1}, {"params": [net[2].weight], "lr": 0.5}]

    expected, result = trained(lambda net: gc.optim.AdamW(groups(net), lr=1e-2, weight_decay=0.0))
    np.testing.assert_allclose(result, expected, rtol=1e-10)


def test_numbers_of_optimizers_have_the_precision_of_the_parameters():
    expected, result = trained(lambda net: gc.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), _rate, steps=20)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_hooks_after_the_step_run_after_each_call():
    net = network(3, 2)
    optimizer = gc.optim.SGD(net.parameters(), lr=0.1)
    seen = []
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(o.step_count))

    @gc.compile
    def train(x):
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()

    for _ in range(3):
        train(gc.ones(1, 3, dtype=gc.float64))
    assert seen == [1, 2, 3]
    handle = optimizer.register_step_pre_hook(lambda *_: None)
    with pytest.raises(TraceError, match="register_step_post_hook"):
        train(gc.ones(1, 3, dtype=gc.float64))
    handle.remove()
    train(gc.ones(1, 3, dtype=gc.float64))
    assert len(seen) == 4


def test_what_compiled_code_cannot_hold_is_refused():
    net = network(3, 2)
    lbfgs = gc.optim.LBFGS(net.parameters())
    with pytest.raises(TraceError, match=r"LBFGS\.step\(closure\) outside"):
        gc.compile(lambda x: lbfgs.step(lambda: net(x).sum()))(gc.ones(1, 3, dtype=gc.float64))
    optimizer = gc.optim.SGD(net.parameters(), lr=0.1)

    def train(x):
        net(x).sum().backward()
        optimizer.step()

    with pytest.raises(TraceError, match="full training function"):
        gc.trace(lambda: optimizer.step())
    with gc.no_grad(), pytest.raises(GradientError, match="does not require gradients"):
        gc.compile(train)(gc.ones(1, 3, dtype=gc.float64))


class Jump(gc.optim.Optimizer):
    """A rule that decides by the value of a number, with a state."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    def init_state(self, param):
        return {"sum": gc.zeros(*param.shape, dtype=param.dtype)}

    def update(self, param, grad, state, hyper):
        total = state["sum"] * 0.5 + grad
        return param - total * hyper["lr"] * (2.0 if hyper["lr"] > 0.03 else 1.0), {"sum": total}


def test_a_rule_that_reads_a_number_makes_it_part_of_the_program():
    expected, result = trained(lambda net: Jump(net.parameters(), lr=0.1), _rate, steps=5)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.parametrize("clip", [None, 0.1])
def test_a_function_and_a_step_have_the_same_bits(clip):
    losses = []
    for compiled in (True, False):
        gc.manual_seed(0)
        net = network(6, 8, 1).float()
        optimizer = gc.optim.AdamW(net.parameters(), lr=0.1, weight_decay=0.3)

        def train(x, net=net, optimizer=optimizer):
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(net.parameters(), clip)
            optimizer.step()
            return loss

        step = gc.compile_step(net, lambda output: output.square().mean(), optimizer, clip_norm=clip)
        run = gc.compile(train) if compiled else step
        losses.append([])
        for _ in range(6):
            losses[-1].append(run(gc.ones(2, 6)).item())
            optimizer.param_groups[0]["lr"] *= 0.9
    assert losses[0] == losses[1]


@pytest.mark.parametrize("rate", [0.1, gc.tensor(0.1, dtype=gc.float64)])
def test_a_rate_that_the_function_itself_sets_is_the_one_of_the_update(rate):
    losses = []
    for compiled in (False, True):
        gc.manual_seed(0)
        net = network(6, 8, 1)
        optimizer = gc.optim.SGD(net.parameters(), lr=rate.clone() if isinstance(rate, gc.Tensor) else rate)

        def train(x, factor, net=net, optimizer=optimizer):
            group = optimizer.param_groups[0]
            if isinstance(rate, gc.Tensor):
                group["lr"].mul_(factor)
            else:
                group["lr"] = rate * factor
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        run = gc.compile(train) if compiled else train
        losses.append([run(gc.ones(2, 6, dtype=gc.float64), factor).item() for factor in (1.0, 0.5, 0.25, 0.5)])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-10)


def test_code_of_users_is_watched_and_rules_of_the_library_are_not(monkeypatch):
    watched, counts = {}, {"rule": 0, "gradient": 0}

    def noting(name, function):
        def noted(*args, **kwargs):
            watched[name] = sys.getprofile() is not None
            return function(*args, **kwargs)

        noted.__module__ = function.__module__
        return noted

    class Own(gc.optim.Adam):
        def update(self, param, grad, state, hyper):
            counts["rule"] += 1
            return super().update(param, grad, state, hyper)

    class Doubled(gc.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, g):
            counts["gradient"] += 1
            return 2 * g

    def run(optimizer_class, function):
        net = network(3, 1)
        step = gc.compile_step(net, lambda y, target: function(y - target).mean(), optimizer_class(net.parameters()))
        step(gc.ones(2, 3, dtype=gc.float64), gc.zeros(2, 1, dtype=gc.float64))

    monkeypatch.setattr(OpNode, "_gradients", noting("gradient", OpNode._gradients))
    monkeypatch.setattr(gc.optim.Adam, "update", noting("rule", gc.optim.Adam.update))
    run(gc.optim.Adam, gc.abs)
    assert watched == {"gradient": False, "rule": False}
    for optimizer_class, function in ((Own, gc.abs), (gc.optim.Adam, Doubled.apply)):
        with pytest.raises(TraceError, match="counts"):
            run(optimizer_class, function)
