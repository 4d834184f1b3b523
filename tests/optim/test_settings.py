"""Settings of optimizers that programs depend on: the same in native, compiled and traced steps."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import graphc as gc
import graphc.nn.functional as F
from graphc import nn
from graphc.optim.settings import GivenNumbers, GroupNumber, OptimizerSettings, is_argument

RATES = [0.0, 1e-3, np.float64(2e-3), np.float32(0.125), 1, 0, 1e-3]
"""What schedules may give, one after the other."""


def _model():
    gc.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    return net, gc.optim.Adam(net.parameters(), lr=0.1)


def _loop(net, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()

    return step, lambda: 1


def _native(net, optimizer):
    optimizer.native = True
    return _loop(net, optimizer)[0], lambda: len(optimizer.updates)


def _compiled_function(net, optimizer):
    function = gc.compile(_loop(net, optimizer)[0])
    return function, lambda: len(function.programs)


def _compiled_step(net, optimizer):
    step = gc.compile_step(net, F.mse_loss, optimizer)
    return step, lambda: len(step.graphs)


def _weights(make):
    """The weights after steps at all rates, and how many programs they took."""
    net, optimizer = _model()
    step, programs = make(net, optimizer)
    gc.manual_seed(1)
    x, y = gc.randn(8, 3, dtype=gc.float64), gc.randn(8, 1, dtype=gc.float64)
    for rate in RATES:
        optimizer.param_groups[0]["lr"] = rate
        step(x, y)
    return [p.detach().numpy() for p in net.parameters()], programs()


@pytest.mark.parametrize("make", [_native, _compiled_function, _compiled_step])
def test_a_rate_of_whatever_type_that_starts_from_0_is_one_program(make):
    (expected, _), (found, programs) = _weights(_loop), _weights(make)
    assert programs == 1
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-14)


def test_which_numbers_are_arguments():
    optimizer = gc.optim.SGD([nn.Parameter(gc.ones(2))], lr=0.1)
    given = [("lr", 0.0), ("lr", gc.tensor(0.1)), ("momentum", 0.9), ("weight_decay", np.float64(0.1))]
    assert all(is_argument(optimizer, *pair) for pair in given)
    fixed = [("momentum", 0.0), ("lr", None), ("lr", True), ("nesterov", True), ("dampening", 0.5)]
    assert not any(is_argument(optimizer, *pair) for pair in fixed)


def test_settings_hold_until_one_is_another_or_a_parameter_changes_groups():
    a, b, c = (nn.Parameter(gc.ones(2)) for _ in range(3))
    optimizer = gc.optim.SGD([{"params": [a, b]}, {"params": [c]}], lr=0.1, momentum=0.9)
    settings = OptimizerSettings(optimizer)
    first, second = optimizer.param_groups
    first["lr"], first["momentum"] = 0.0, 0.5
    assert settings.holds()
    first["nesterov"] = True
    assert not settings.holds()
    assert "setting of SGD" in settings.why()
    first["nesterov"] = False
    assert settings.holds()
    second["params"].insert(0, first["params"].pop())
    assert not settings.holds()


def test_a_parameter_that_changes_groups_has_the_rate_of_its_group():
    params = [nn.Parameter(gc.ones(2)) for _ in range(3)]
    optimizer = gc.optim.SGD([{"params": params[:2], "lr": 0.0}, {"params": params[2:], "lr": 1.0}])
    optimizer.native = True
    for p in params:
        p.grad = gc.ones(2)
    optimizer.step()
    first, second = optimizer.param_groups
    second["params"].insert(0, first["params"].pop())
    optimizer.step()
    assert [p[0].item() for p in params] == [1.0, 0.0, -1.0]


def test_arrays_are_made_anew_where_a_number_is_another():
    optimizer = gc.optim.SGD([nn.Parameter(gc.ones(2))], lr=0.1)
    numbers = GivenNumbers()
    numbers.add([GroupNumber(weakref.ref(optimizer), 0, "lr", np.dtype("f8"))])
    first = numbers.arrays()
    assert numbers.arrays() is first
    optimizer.param_groups[0]["lr"] = rate = gc.tensor(0.5)
    assert [a.item() for a in numbers.arrays()] == [0.5]
    rate.fill_(0.25)
    assert [a.item() for a in numbers.arrays()] == [0.25]
