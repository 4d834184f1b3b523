"""Update rules inside of compiled steps."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc import nn, optim
from graphc.errors import HookError

ALL_RULES = ("SGD", "Adam", "AdamW", "NAdam", "RAdam", "RMSprop", "Rprop", "Adagrad", "Adadelta", "Adamax", "ASGD")


@pytest.mark.parametrize("name", [*ALL_RULES, "Adafactor", "Muon"])
def test_numbers_of_the_optimizer_are_as_precise_as_the_parameters(name):
    graphc.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7, bias=False), nn.Tanh(), nn.Linear(7, 1, bias=False)).double()
    other = copy.deepcopy(model)
    more = {"momentum": 0.9, "weight_decay": 0.01} if name == "SGD" else {}
    first, second = (getattr(optim, name)(m.parameters(), lr=0.0123, **more) for m in (model, other))
    x, y = graphc.randn(16, 5, dtype=graphc.float64), graphc.randn(16, 1, dtype=graphc.float64)
    step = graphc.compile_step(model, F.mse_loss, first)
    for _ in range(20):
        step(x, y)
        second.zero_grad()
        F.mse_loss(other(x), y).backward()
        second.step()
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12, atol=1e-14)


def test_hooks_of_parameters_change_the_step_and_are_traced_again():
    nets = [nn.Linear(2, 2), nn.Linear(2, 2)]
    nets[1].load_state_dict(nets[0].state_dict())
    optimizers = [graphc.optim.SGD(net.parameters(), lr=0.1) for net in nets]
    step = graphc.compile_step(nets[0], lambda y: y.sum(), optimizers[0])
    x, factor = graphc.ones(1, 2), [2.0]

    def both() -> None:
        step(x)
        optimizers[1].zero_grad()
        nets[1](x).sum().backward()
        optimizers[1].step()
        for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
            assert graphc.allclose(a, b, atol=1e-6)

    both()
    handles = [net.weight.register_hook(lambda g: g * factor[0]) for net in nets]
    both()
    factor[0] = 5.0
    both()
    for handle in handles:
        handle.remove()
    both()


def test_hooks_after_accumulation_see_the_gradient_and_may_change_it():
    net, seen = nn.Linear(2, 2, bias=False), []
    step = graphc.compile_step(net, lambda y: y.sum(), graphc.optim.SGD(net.parameters(), lr=0.1))
    step(graphc.ones(1, 2))
    before = net.weight.detach().clone()
    with net.weight.register_post_accumulate_grad_hook(lambda p: (seen.append(p.grad.tolist()), p.grad.mul_(2))):
        step(graphc.ones(1, 2))
    assert seen == [[[1, 1], [1, 1]]] and net.weight.grad is None
    np.testing.assert_allclose((before - net.weight).detach().numpy(), np.full((2, 2), 0.2), rtol=1e-5)
    step(graphc.ones(1, 2))
    assert len(seen) == 1


def test_hooks_after_accumulation_that_update_themselves_are_refused():
    net = nn.Linear(2, 2)
    step = graphc.compile_step(net, lambda y: y.sum(), graphc.optim.SGD(net.parameters(), lr=0.1))
    before = net.weight.detach().clone()

    def clear(p):
        p.grad = None

    net.weight.register_post_accumulate_grad_hook(clear)
    with pytest.raises(HookError, match="change only `grad`"):
        step(graphc.ones(1, 2))
    np.testing.assert_array_equal(net.weight.detach().numpy(), before.numpy())


def test_hooks_of_parameters_see_the_gradient_of_each_step():
    net, seen = nn.Linear(2, 2), []
    step = graphc.compile_step(net, lambda y: y.sum(), graphc.optim.SGD(net.parameters(), lr=0.1))
    net.weight.register_hook(lambda g: seen.append(g.tolist()))
    for i in range(3):
        step(graphc.full((1, 2), float(i)))
    assert seen == [[[i, i], [i, i]] for i in range(3)]


@pytest.mark.sampled(50)
@pytest.mark.parametrize("name", [*ALL_RULES, "Adafactor", "Muon"])
def test_every_rule_takes_limited_sums_of_scaled_gradients(name):
    graphc.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7, bias=False), nn.Tanh(), nn.Linear(7, 1, bias=False)).double()
    other = copy.deepcopy(model)
    first, second = (getattr(optim, name)(m.parameters(), lr=0.0123) for m in (model, other))
    options = {"accumulate": 2, "clip_norm": 0.05, "loss_scale": "dynamic", "ema": 0.9}
    step = graphc.compile_step(model, F.mse_loss, first, **options)
    for i in range(8):
        x, y = graphc.randn(16, 5, dtype=graphc.float64), graphc.randn(16, 1, dtype=graphc.float64)
        step(x, y)
        (F.mse_loss(other(x), y) / 2).backward()
        if i % 2:
            nn.utils.clip_grad_norm_(other.parameters(), 0.05)
            second.step()
            second.zero_grad()
    before = [p.detach().clone() for p in model.parameters()]
    states = {i: {k: v.clone() for k, v in s.items()} for i, s in first.state_dict()["state"].items()}
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-11, atol=1e-13)
    for value in (float("inf"), 1.0):
        step(x * value, y)
    assert all(p.equal(q) for p, q in zip(model.parameters(), before, strict=True)) and step.loss_scale == 32768.0
    for i, state in first.state_dict()["state"].items():
        for key, tensor in state.items():
            assert tensor.equal(states[i][key]), key


SCHEDULES = {
    "StepLR": {"step_size": 2},
    "MultiStepLR": {"milestones": [2, 4]},
    "ConstantLR": {"total_iters": 2},
    "LinearLR": {"start_factor": 0.1, "total_iters": 4},
    "ExponentialLR": {"gamma": 0.9},
    "PolynomialLR": {"total_iters": 5},
    "CosineAnnealingLR": {"T_max": 6},
    "CosineAnnealingWarmRestarts": {"T_0": 3},
    "CyclicLR": {"base_lr": 1e-3, "max_lr": 1e-2, "step_size_up": 2, "cycle_momentum": False},
    "OneCycleLR": {"max_lr": 1e-2, "total_steps": 8},
    "LambdaLR": {"lr_lambda": lambda i: i / 4},
    "MultiplicativeLR": {"lr_lambda": lambda i: 0.9},
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_changes_the_numbers_of_one_program(name):
    graphc.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 1)).double()
    other = copy.deepcopy(model)
    first, second = (optim.AdamW(m.parameters(), lr=0.0123) for m in (model, other))
    schedules = [getattr(optim.lr_scheduler, name)(o, **SCHEDULES[name]) for o in (first, second)]
    x, y = graphc.randn(16, 5, dtype=graphc.float64), graphc.randn(16, 1, dtype=graphc.float64)
    step = graphc.compile_step(model, F.mse_loss, first, clip_norm=0.1)
    for _ in range(7):
        step(x, y)
        second.zero_grad()
        F.mse_loss(other(x), y).backward()
        nn.utils.clip_grad_norm_(other.parameters(), 0.1)
        second.step()
        for schedule in schedules:
            schedule.step()
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-11, atol=1e-14)
    assert len(step.graphs) == 1
