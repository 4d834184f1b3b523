"""Compiled training steps with every optimizer give what eager steps give, also when schedules change numbers."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn, optim
from graphc.nn import functional as F

OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "dampening": 0.3, "maximize": True}),
    ("Adam", {"lr": 0.01, "weight_decay": 0.01}),
    ("Adam", {"amsgrad": True, "betas": (0.0, 0.9)}),
    ("AdamW", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.9, "centered": True}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}),
    ("Adadelta", {"lr": 0.5, "weight_decay": 0.01}),
    ("Adamax", {"lr": 0.01}),
    ("NAdam", {"lr": 0.01, "weight_decay": 0.01, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.01, "betas": (0.9, 0.9)}),
    ("ASGD", {"lr": 0.1, "t0": 2}),
    ("Rprop", {"lr": 0.01}),
]


def network() -> Any:
    graphc.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 3))


def batch(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return graphc.tensor(rng.standard_normal((6, 4)).astype(np.float32)), graphc.tensor(rng.integers(0, 3, 6))


def eager_step(net: Any, optimizer: Any, x: Any, y: Any) -> float:
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def assert_same_state(a: Any, b: Any) -> None:
    for (name, x), y in zip(a.state_dict().items(), b.state_dict().values(), strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=2e-4, atol=2e-6, err_msg=name)


@pytest.mark.sampled(50)
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_steps_are_those_of_eager_mode(name: str, options: dict[str, Any]):
    first = network()
    second = copy.deepcopy(first)
    make = getattr(optim, name)
    one, two = make(first.parameters(), **options), make(second.parameters(), **options)
    step = graphc.compile_step(second, F.cross_entropy, two)
    state = graphc.get_rng_state()
    expected = [eager_step(first, one, *batch(i)) for i in range(4)]
    graphc.set_rng_state(state)
    found = [step(*batch(i)).item() for i in range(4)]
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert_same_state(first, second)
    assert two.step_count == 4 and len(step.graphs) == 1
    for p, q in zip(first.parameters(), second.parameters(), strict=True):
        for entry, array in one.state[p].items():
            np.testing.assert_allclose(array.numpy(), two.state[q][entry].numpy(), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(("name", "options"), [("SGD", {"momentum": 0.9}), ("Adam", {"weight_decay": 0.1})])
def test_a_schedule_of_rate_and_momentum_needs_one_program(name: str, options: dict[str, Any]):
    first = network().eval()
    second = copy.deepcopy(first)
    make = getattr(optim, name)
    one, two = make(first.parameters(), lr=0.1, **options), make(second.parameters(), lr=0.1, **options)
    schedules = [optim.lr_scheduler.OneCycleLR(o, max_lr=0.1, total_steps=8) for o in (one, two)]
    step = graphc.compile_step(second, F.cross_entropy, two)
    for i in range(6):
        eager_step(first, one, *batch(i))
        step(*batch(i))
        for schedule in schedules:
            schedule.step()
    assert len(step.graphs) == 1
    assert_same_state(first, second)


def test_compiled_and_eager_steps_take_turns():
    net = network().eval()
    other = copy.deepcopy(net)
    one, two = optim.Adam(net.parameters(), lr=0.01), optim.Adam(other.parameters(), lr=0.01)
    step = graphc.compile_step(other, F.cross_entropy, two)
    for i in range(4):
        eager_step(net, one, *batch(i))
        if i % 2:
            step(*batch(i))
        else:
            eager_step(other, two, *batch(i))
    assert_same_state(net, other)
