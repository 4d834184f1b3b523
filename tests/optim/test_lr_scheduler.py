"""Learning-rate schedules against PyTorch over many epochs, and their states."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
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


SCHEDULES = [
    ("LambdaLR", {"lr_lambda": factor}),
    ("LambdaLR", {"lr_lambda": [factor, lambda e: 0.5**e]}),
    ("MultiplicativeLR", {"lr_lambda": lambda e: 0.9}),
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 5, 9], "gamma": 0.5}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 4}),
    ("LinearLR", {"start_factor": 0.1, "total_iters": 6}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.2, "total_iters": 6}),
    ("ExponentialLR", {"gamma": 0.8}),
    ("PolynomialLR", {"total_iters": 7, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 2}),
]


@pytest.mark.parametrize(("name", "options"), SCHEDULES)
def test_as_torch(torch, name: str, options: dict):
    histories = []
    for lib in (graphc, torch):
        optimizer = optimizer_of(lib)
        histories.append(rates(optimizer, getattr(lib.optim.lr_scheduler, name)(optimizer, **options), 20))
    np.testing.assert_allclose(histories[0], histories[1], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    "options",
    [
        {"total_steps": 20},
        {"epochs": 4, "steps_per_epoch": 5, "anneal_strategy": "linear"},
        {"total_steps": 20, "three_phase": True},
        {"total_steps": 20, "pct_start": 0.5, "div_factor": 10.0, "final_div_factor": 100.0},
        {"total_steps": 20, "cycle_momentum": False},
    ],
)
@pytest.mark.parametrize(("name", "more"), [("SGD", {"momentum": 0.9}), ("Adam", {})])
def test_one_cycle_as_torch(torch, options: dict, name: str, more: dict):
    histories = []
    for lib in (graphc, torch):
        optimizer = optimizer_of(lib, name, **more)
        scheduler = lib.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=[1.0, 2.0], **options)
        histories.append(rates(optimizer, scheduler, 20))
    np.testing.assert_allclose(histories[0], histories[1], rtol=1e-9)


def test_warm_up_then_cosine_as_torch(torch):
    histories = []
    for lib in (graphc, torch):
        optimizer = optimizer_of(lib)
        schedules = lib.optim.lr_scheduler
        stages = [
            schedules.LinearLR(optimizer, start_factor=0.1, total_iters=4),
            schedules.CosineAnnealingLR(optimizer, T_max=8),
            schedules.ExponentialLR(optimizer, gamma=0.5),
        ]
        histories.append(rates(optimizer, schedules.SequentialLR(optimizer, stages, milestones=[4, 12]), 18))
    np.testing.assert_allclose(histories[0], histories[1], rtol=1e-9, atol=1e-15)


def test_chained_as_torch(torch):
    histories = []
    for lib in (graphc, torch):
        optimizer = optimizer_of(lib)
        schedules = lib.optim.lr_scheduler
        stages = [schedules.ConstantLR(optimizer, 0.1, 3), schedules.ExponentialLR(optimizer, gamma=0.9)]
        histories.append(rates(optimizer, schedules.ChainedScheduler(stages), 8))
    np.testing.assert_allclose(histories[0], histories[1], rtol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 2},
        {"patience": 1, "mode": "max", "factor": 0.5},
        {"patience": 1, "cooldown": 2, "min_lr": [0.01, 0.001]},
        {"patience": 1, "threshold": 0.3, "threshold_mode": "abs"},
    ],
)
def test_plateau_as_torch(torch, options: dict):
    metrics = [1.0, 0.9, 0.95, 0.93, 0.92, 0.5, 0.6, 0.7, 0.8, 0.4, 0.39999, 0.41, 0.42, 0.43, 0.44]
    histories = []
    for lib in (graphc, torch):
        optimizer = optimizer_of(lib)
        scheduler = lib.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        rates_seen = []
        for metric in metrics:
            scheduler.step(metric)
            rates_seen.append(list(scheduler.get_last_lr()))
        histories.append(rates_seen)
    np.testing.assert_allclose(histories[0], histories[1], rtol=1e-12)


@pytest.mark.parametrize(("name", "options"), [s for s in SCHEDULES if "Lambda" not in s[0] and "Mul" not in s[0][:4]])
def test_state_goes_on(name: str, options: dict):
    optimizer = optimizer_of(graphc)
    scheduler = getattr(lr_scheduler, name)(optimizer, **options)
    rates(optimizer, scheduler, 4)
    saved = scheduler.state_dict(), optimizer.state_dict()
    assert "optimizer" not in saved[0]
    other = optimizer_of(graphc)
    resumed = getattr(lr_scheduler, name)(other, **options)
    other.load_state_dict(saved[1])
    resumed.load_state_dict(saved[0])
    assert rates(optimizer, scheduler, 8) == rates(other, resumed, 8)


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
