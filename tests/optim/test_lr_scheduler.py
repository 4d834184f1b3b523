"""Learning-rate schedules: states, order of calls, jumps, errors."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import graphc
from graphc import nn
from graphc.optim import SGD, Adam, lr_scheduler
from graphc.optim.lr_scheduler import ExponentialLR, ReduceLROnPlateau, SequentialLR, StepLR


def optimizer_of(lib: Any, name: str = "SGD", **options: Any) -> Any:
    groups = [
        {"params": [lib.nn.Parameter(lib.ones(1))]},
        {"params": [lib.nn.Parameter(lib.ones(1))], "lr": 0.03},
    ]
    return getattr(lib.optim, name)(groups, lr=0.5, **options)


def rates(optimizer: Any, scheduler: Any, epochs: int) -> list[list[float]]:
    """Learning rates of all groups, and momentum, before each epoch."""
    rates_seen = []
    for _ in range(epochs):
        group = optimizer.param_groups[0]
        rates_seen.append(
            [g["lr"] for g in optimizer.param_groups] + [group.get("momentum", group.get("betas", (0,))[0])]
        )
        assert list(scheduler.get_last_lr()) == [g["lr"] for g in optimizer.param_groups]
        optimizer.step()
        scheduler.step()
    return rates_seen


def factor(epoch: int) -> float:
    return 1 / (1 + epoch)


def test_states_of_combined_and_lambda_schedules_go_on():
    def make(optimizer):
        stages = [StepLR(optimizer, 2), lr_scheduler.LambdaLR(optimizer, factor)]
        return SequentialLR(optimizer, stages, [5])

    first, second = optimizer_of(graphc), optimizer_of(graphc)
    a, b = make(first), make(second)
    rates(first, a, 3)
    state = a.state_dict(), first.state_dict()
    second.load_state_dict(state[1])
    b.load_state_dict(state[0])
    assert rates(first, a, 8) == rates(second, b, 8)


def test_steps_in_the_wrong_order_warn():
    optimizer = SGD([nn.Parameter(graphc.ones(1))], lr=0.1)
    scheduler = ExponentialLR(optimizer, 0.9)
    with pytest.warns(UserWarning, match="before the first optimizer.step") as caught:
        scheduler.step()
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
        scheduler.step()


def test_jump_to_an_epoch():
    optimizer = SGD([nn.Parameter(graphc.ones(1))], lr=1.0)
    scheduler = StepLR(optimizer, 10, 0.5)
    optimizer.step()
    scheduler.step(25)
    assert optimizer.param_groups[0]["lr"] == 0.25 and scheduler.last_epoch == 25


def test_resume_needs_initial_rates():
    optimizer = SGD([nn.Parameter(graphc.ones(1))], lr=1.0)
    with pytest.raises(ValueError, match="group 0 has no initial_lr"):
        StepLR(optimizer, 10, last_epoch=5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda o: lr_scheduler.LambdaLR(o, [factor, factor, factor]), "3 functions for 1 groups"),
        (lambda o: lr_scheduler.ConstantLR(o, 2.0), "factor 2.0"),
        (lambda o: lr_scheduler.LinearLR(o, 0.0), "start_factor"),
        (lambda o: lr_scheduler.LinearLR(o, 0.5, 2.0), "end_factor"),
        (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 0), "T_0"),
        (lambda o: lr_scheduler.OneCycleLR(o, 1.0), "pass total_steps"),
        (lambda o: lr_scheduler.OneCycleLR(o, 1.0, total_steps=0), "total_steps must be at least 1, got 0"),
        (lambda o: lr_scheduler.OneCycleLR(o, 1.0, total_steps=9, pct_start=3), "pct_start"),
        (lambda o: lr_scheduler.OneCycleLR(o, 1.0, total_steps=9, anneal_strategy="x"), "anneal_strategy"),
        (lambda o: lr_scheduler.OneCycleLR(o, [1.0, 2.0], total_steps=9), "2 values of max_lr"),
        (lambda o: ReduceLROnPlateau(o, factor=1.0), "must be below 1"),
        (lambda o: ReduceLROnPlateau(o, mode="low"), "mode 'low'"),
        (lambda o: ReduceLROnPlateau(o, min_lr=[0.1, 0.2]), "2 values of min_lr"),
        (lambda o: SequentialLR(o, [StepLR(o, 1)], [3]), "1 schedulers need 0 milestones, got 1"),
        (lambda o: lr_scheduler.ChainedScheduler([]), "at least one schedule"),
    ],
)
def test_errors(make: Any, message: str):
    with pytest.raises(ValueError, match=message):
        make(SGD([nn.Parameter(graphc.ones(1))], lr=0.1, momentum=0.9))


def test_needs_an_optimizer_and_momentum():
    with pytest.raises(TypeError, match="list is not an Optimizer"):
        StepLR([], 3)
    with pytest.raises(ValueError, match="no momentum"):
        adagrad = graphc.optim.Adagrad([nn.Parameter(graphc.ones(1))])
        lr_scheduler.OneCycleLR(adagrad, 1.0, total_steps=5)
    optimizer = Adam([nn.Parameter(graphc.ones(1))])
    scheduler = lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=2)
    optimizer.step()
    for _ in range(2):
        scheduler.step()
    with pytest.raises(ValueError, match="step 3 after the last one, 2"):
        scheduler.step()
