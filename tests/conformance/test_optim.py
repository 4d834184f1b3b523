"""Optimizers over 20 steps and schedules over 30 against PyTorch, also with groups, saved state and closures."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import graphc
from tests.conformance.compare import normal

SHAPES = [(3, 4), (5,), (), (2, 0)]
COMPILED_SHAPES = [(3, 4), (5,)]

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "maximize": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "dampening": 0.3}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1}),
    ("Adam", {}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.9), "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "eps": 1e-3, "maximize": True}),
    ("AdamW", {}),
    *(
        (name, options)
        for name in ("Adam", "AdamW")
        for options in (
            *({"lr": 0.01, "betas": (0.5, 0.9)}, {"betas": (0.0, 0.9)}, {"weight_decay": 0.1}),
            *({"amsgrad": True, "eps": 1e-3}, {"maximize": True, "weight_decay": 0.1}),
        )
    ),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.2, "amsgrad": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("RMSprop", {"alpha": 0.8, "momentum": 0.5, "maximize": True}),
    ("RMSprop", {"momentum": 0.9}),
    ("RMSprop", {"centered": True}),
    ("RMSprop", {"alpha": 0.5, "eps": 1e-3, "maximize": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.7, "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.05, "betas": (0.7, 0.9), "weight_decay": 0.1}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "momentum_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {}),
    ("RAdam", {"lr": 0.05, "betas": (0.9, 0.99), "weight_decay": 0.1}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.1, "lambd": 0.01, "t0": 5, "weight_decay": 0.1}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.4, 1.3), "step_sizes": (0.05, 0.3)}),
]
LOOSE = {"NAdam": 1e-6, "ASGD": 1e-6}
"""PyTorch keeps some numbers of these in f32, whatever the parameters are."""


def parameters(library, shapes=SHAPES, dtype="float64"):
    """The same parameters in either library."""
    return [library.nn.Parameter(library.from_numpy(normal(*s, seed=7).astype(dtype))) for s in shapes]


def set_gradients(library, params, step):
    """The same gradients in either library; the first parameter has none in the first step."""
    for i, p in enumerate(params):
        p.grad = library.from_numpy(np.asarray(normal(*p.shape, seed=100 * step + i)))
    if step == 0:
        params[0].grad = None


def compare(ours, theirs, tolerance):
    """Asserts equal parameters."""
    for i, (p, q) in enumerate(zip(ours, theirs, strict=True)):
        a, b = p.detach().numpy(), q.detach().numpy()
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=f"parameter {i}")


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=lambda v: v if isinstance(v, str) else "-".join(v))
def test_twenty_steps(torch, name, options):
    parameter_lists = [parameters(library) for library in (graphc, torch)]
    optimizers = [getattr(m.optim, name)(p, **options) for m, p in zip((graphc, torch), parameter_lists, strict=True)]
    for step in range(20):
        for library, params, optimizer in zip((graphc, torch), parameter_lists, optimizers, strict=True):
            set_gradients(library, params, step)
            optimizer.step()
        compare(*parameter_lists, LOOSE.get(name, 1e-9))
    mine, other = (o.state_dict() for o in optimizers)
    assert set(mine["state"]) == set(other["state"])
    for key, entries in other["state"].items():
        assert {n for n, v in entries.items() if v is not None} <= set(mine["state"][key])


@pytest.mark.parametrize("name", sorted({name for name, _ in OPTIMIZERS}))
def test_groups_and_saved_state(torch, name):
    parameter_lists, optimizers = [], []
    for library in (graphc, torch):
        params = parameters(library, SHAPES[:3])
        groups = [{"params": params[:1], "lr": 0.2}, {"params": params[1:2]}]
        optimizer = getattr(library.optim, name)(groups, lr=0.05)
        optimizer.add_param_group({"params": params[2:], "lr": 0.01})
        parameter_lists.append(params)
        optimizers.append(optimizer)
    for step in range(6):
        for k, library in enumerate((graphc, torch)):
            set_gradients(library, parameter_lists[k], step)
            optimizers[k].step()
            if step == 3:
                saved = optimizers[k].state_dict()
                optimizers[k] = getattr(library.optim, name)([{"params": [p]} for p in parameter_lists[k]], lr=0.9)
                optimizers[k].load_state_dict(saved)
            optimizers[k].zero_grad(set_to_none=step % 2 == 0)
    compare(*parameter_lists, LOOSE.get(name, 1e-9))


@pytest.mark.parametrize("name", sorted({name for name, _ in OPTIMIZERS}))
def test_a_closure_and_real_gradients(torch, name):
    parameter_lists = [parameters(library, COMPILED_SHAPES) for library in (graphc, torch)]
    for params, library in zip(parameter_lists, (graphc, torch), strict=True):
        optimizer = getattr(library.optim, name)(params, lr=0.01)

        def closure(params=params, optimizer=optimizer):
            optimizer.zero_grad()
            loss = sum(((p - 1) ** 4).sum() for p in params)
            loss.backward()
            return loss

        losses = [float(optimizer.step(closure).detach()) for _ in range(5)]
        assert losses[-1] < losses[0]
    compare(*parameter_lists, LOOSE.get(name, 1e-9))


@pytest.mark.parametrize("name", sorted({name for name, _ in OPTIMIZERS}))
def test_wrong_options(torch, name):
    for library in (graphc, torch):
        make = getattr(library.optim, name)
        with pytest.raises(ValueError):
            make([])
        with pytest.raises(ValueError):
            make(parameters(library), lr=-1.0)
        with pytest.raises(TypeError):
            make(parameters(library)[0])


SCHEDULES = [
    ("StepLR", {"step_size": 4, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [3, 7, 7, 20], "gamma": 0.3}),
    ("ConstantLR", {"factor": 0.2, "total_iters": 6}),
    ("LinearLR", {"start_factor": 0.1, "end_factor": 0.9, "total_iters": 12}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.2, "total_iters": 6}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("PolynomialLR", {"total_iters": 10, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 8, "eta_min": 0.001}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4, "T_mult": 2, "eta_min": 0.001}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "eta_min": 0.01}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 31}),
    ("OneCycleLR", {"max_lr": [0.5, 0.2], "epochs": 5, "steps_per_epoch": 7, "anneal_strategy": "linear"}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 31, "three_phase": True, "pct_start": 0.4}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 31, "pct_start": 0.5, "div_factor": 10.0, "final_div_factor": 100.0}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 31, "cycle_momentum": False}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.2, "step_size_up": 4}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.2, "step_size_up": 3, "step_size_down": 5, "mode": "triangular2"}),
    (
        "CyclicLR",
        {"base_lr": [0.01, 0.02], "max_lr": [0.2, 0.3], "step_size_up": 4, "mode": "exp_range", "gamma": 0.95},
    ),
]


def scheduled(library, name, options, optimizer="SGD"):
    """An optimizer of two groups and a schedule of its rates."""
    params = parameters(library, SHAPES[:2])
    groups = [{"params": params[:1]}, {"params": params[1:], "lr": 0.05}]
    more = {"momentum": 0.9} if optimizer == "SGD" else {}
    scheduled_optimizer = getattr(library.optim, optimizer)(groups, lr=0.1, **more)
    return scheduled_optimizer, getattr(library.optim.lr_scheduler, name)(scheduled_optimizer, **options)


def rates(library, optimizer, step, count=30, metrics=None):
    """Rates and momenta of every group before each step."""
    rates_by_step = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(count):
            rates_by_step.append(
                [(g["lr"], g.get("momentum", 0), g.get("betas", (0,))[0]) for g in optimizer.param_groups]
            )
            set_gradients(library, [p for g in optimizer.param_groups for p in g["params"]], i)
            optimizer.step()
            step() if metrics is None else step(metrics[i])
    return np.array(rates_by_step)


@pytest.mark.parametrize(("name", "options"), SCHEDULES, ids=lambda v: v if isinstance(v, str) else "-".join(v))
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_thirty_steps(torch, name, options, optimizer):
    histories = []
    for library in (graphc, torch):
        scheduled_optimizer, schedule = scheduled(library, name, options, optimizer)
        histories.append(rates(library, scheduled_optimizer, schedule.step))
        assert np.allclose(schedule.get_last_lr(), [g["lr"] for g in scheduled_optimizer.param_groups])
    np.testing.assert_allclose(*histories, rtol=1e-9, atol=1e-12)


def _lambda(library, scheduled_optimizer):
    return library.optim.lr_scheduler.LambdaLR(scheduled_optimizer, [lambda e: 0.9**e, lambda e: 1 / (e + 1)])


def _one_lambda(library, scheduled_optimizer):
    return library.optim.lr_scheduler.LambdaLR(scheduled_optimizer, lambda e: 1 / (e + 1))


def _multiplicative(library, scheduled_optimizer):
    return library.optim.lr_scheduler.MultiplicativeLR(scheduled_optimizer, lambda e: 0.8 if e % 3 else 1.1)


def _warm_up(library, scheduled_optimizer):
    s = library.optim.lr_scheduler
    stages = [
        s.LinearLR(scheduled_optimizer, 0.1, total_iters=5),
        s.CosineAnnealingLR(scheduled_optimizer, 15),
        s.ExponentialLR(scheduled_optimizer, 0.9),
    ]
    return s.SequentialLR(scheduled_optimizer, stages, milestones=[5, 20])


def _chained(library, scheduled_optimizer):
    s = library.optim.lr_scheduler
    return s.ChainedScheduler(
        [s.ConstantLR(scheduled_optimizer, 0.1, total_iters=3), s.ExponentialLR(scheduled_optimizer, 0.9)]
    )


@pytest.mark.parametrize("build", [_lambda, _one_lambda, _multiplicative, _warm_up, _chained])
def test_schedules_of_functions_and_of_others(torch, build):
    histories = []
    for library in (graphc, torch):
        scheduled_optimizer, _ = scheduled(library, "ConstantLR", {"factor": 1.0})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            schedule = build(library, scheduled_optimizer)
        histories.append(rates(library, scheduled_optimizer, schedule.step))
    np.testing.assert_allclose(*histories, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 2, "factor": 0.5},
        {"mode": "max", "patience": 0, "threshold": 0.1, "threshold_mode": "abs", "cooldown": 2},
        {"patience": 1, "min_lr": [0.02, 0.01], "eps": 1e-3},
        {"patience": 1, "cooldown": 2, "min_lr": [0.01, 0.001]},
        {"patience": 1, "threshold": 0.3, "threshold_mode": "abs"},
    ],
    ids=["min", "max", "limits", "cooldown", "threshold"],
)
def test_plateau(torch, options):
    metrics = np.round(np.abs(normal(30)), 1).tolist()
    histories = []
    for library in (graphc, torch):
        scheduled_optimizer, schedule = scheduled(library, "ReduceLROnPlateau", options)
        histories.append(rates(library, scheduled_optimizer, schedule.step, metrics=metrics))
    np.testing.assert_allclose(*histories, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("name", "options"), SCHEDULES, ids=lambda v: v if isinstance(v, str) else "-".join(v))
def test_schedules_continue_from_saved_state(name, options):
    scheduled_optimizer, schedule = scheduled(graphc, name, options)
    rates(graphc, scheduled_optimizer, schedule.step, 9)
    again, resumed = scheduled(graphc, name, options)
    again.load_state_dict(scheduled_optimizer.state_dict())
    resumed.load_state_dict(schedule.state_dict())
    np.testing.assert_allclose(
        rates(graphc, again, resumed.step, 9), rates(graphc, scheduled_optimizer, schedule.step, 9)
    )


def test_a_schedule_before_the_optimizer_warns(torch):
    for library in (graphc, torch):
        scheduled_optimizer, schedule = scheduled(library, "StepLR", {"step_size": 2})
        with pytest.warns(UserWarning):
            schedule.step()
        assert scheduled_optimizer.param_groups[0]["lr"] == 0.1
