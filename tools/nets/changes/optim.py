"""Changes of optimizers and schedules: numbers of parameter groups, state, groups, hooks, losses, rates."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from graphc import nn, optim
from graphc.optim import lr_scheduler
from tools.nets.changes.scene import LEARNING_RATE
from tools.nets.changes.table import OPTIMIZER_MODES, changes

NO_UPDATE_RULE = {"LBFGS"}
"""Optimizers whose step needs a closure."""
ONLY_MATRICES = {"Muon"}


def optimizers() -> dict[str, type[Any]]:
    """Return all optimizers with an update rule, by name."""
    exported = {name: getattr(optim, name) for name in optim.__all__}
    return {
        name: kind
        for name, kind in exported.items()
        if isinstance(kind, type) and kind is not optim.Optimizer and name not in NO_UPDATE_RULE
    }


def maker(name: str) -> Callable[[Any], Any]:
    """Return a function that makes an optimizer of that name for a model."""
    kind, numbers = optimizers()[name], {"lr": LEARNING_RATE, "momentum": 0.9} if name == "SGD" else {}

    def make(model: Any) -> Any:
        chosen = [p for p in model.parameters() if p.ndim == 2 or name not in ONLY_MATRICES]
        return kind(chosen, **numbers)

    return make


def numbers_of(name: str) -> dict[str, Any]:
    """Return the numbers and flags of an optimizer's groups, as they are by default."""
    group = maker(name)(nn.Linear(2, 2)).param_groups[0]
    return {key: value for key, value in group.items() if key != "params"}


def other(value: Any) -> Any:
    """Return a value in the place of another one, of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value * 0.5 + (0.05 if value == 0 else 0.0)
    if isinstance(value, tuple):
        return tuple(other(v) if isinstance(v, (int, float)) else v for v in value)
    return value


_STATE = """
{name}.stepped:
    s.make_optimizer = maker("{name}")
    yield
{name}.state_cleared: s.make_optimizer = maker("{name}") => s.optimizer.state.clear()
{name}.state_loaded:
    s.make_optimizer = maker("{name}")
    yield
    state = copy.deepcopy(s.optimizer.state_dict())
    state["param_groups"][0]["lr"] = 0.02
    s.optimizer.load_state_dict(state)
{name}.state_of_the_start_loaded:
    s.make_optimizer = maker("{name}")
    s.prepare()
    state = copy.deepcopy(s.optimizer.state_dict())
    yield
    s.optimizer.load_state_dict(state)
{name}.state_written:
    s.make_optimizer = maker("{name}")
    yield
    for value in [v for entries in s.optimizer.state.values() for v in entries.values()]:
        if isinstance(value, gc.Tensor) and value.ndim:
            value.mul_(0.5)
"""
for _name in optimizers():
    _entries = _STATE.format(name=_name)
    for _key, _value in numbers_of(_name).items():
        _change = f"s.optimizer.param_groups[0][{_key!r}] = {other(_value)!r}"
        _entries += f"{_name}.{_key}: s.make_optimizer = maker({_name!r}) => {_change}\n"
    changes(_entries, {"maker": maker}, ("lean",), OPTIMIZER_MODES)

changes(
    """
group_added:
    s.make_optimizer = lambda model: optim.SGD(model.body.parameters(), lr=LEARNING_RATE)
    yield
    s.optimizer.add_param_group({"params": list(s.model.head.parameters()), "lr": 0.5})
parameter_taken_out_of_a_group: s.optimizer.param_groups[0]["params"].pop()
parameter_of_a_group_replaced:
    old = s.model.head.weight
    s.model.head.weight = nn.Parameter(gc.full((3, 4), 0.25))
    params = s.optimizer.param_groups[0]["params"]
    params[[p is old for p in params].index(True)] = s.model.head.weight
parameter_replaced_in_the_model_only: s.model.head.weight = nn.Parameter(gc.full((3, 4), 0.25))
groups_exchanged:
    s.make_optimizer = lambda m: optim.SGD(
        [{"params": m.body.parameters(), "lr": 0.1}, {"params": m.head.parameters(), "lr": 0.01}], lr=0.1
    )
    yield
    a, b = s.optimizer.param_groups
    a["lr"], b["lr"] = b["lr"], a["lr"]
group_deleted:
    s.make_optimizer = lambda m: optim.SGD(
        [{"params": m.body.parameters(), "lr": 0.1}, {"params": m.head.parameters(), "lr": 0.01}], lr=0.1
    )
    yield
    del s.optimizer.param_groups[1]
group_replaced: s.optimizer.param_groups[0] = {**s.optimizer.param_groups[0], "lr": 0.5}
rate_of_all_groups:
    for group in s.optimizer.param_groups:
        group["lr"] *= 0.1
rate_zero: s.optimizer.param_groups[0]["lr"] = 0.0
rate_from_zero:
    s.make_optimizer = lambda model: optim.SGD(model.parameters(), lr=0.0)
    yield
    s.optimizer.param_groups[0]["lr"] = 0.1
rate_is_a_tensor:
    rate = gc.tensor(0.1)
    s.make_optimizer = lambda model: optim.SGD(model.parameters(), lr=rate)
    yield
    rate.fill_(0.5)
rate_becomes_a_tensor: s.optimizer.param_groups[0]["lr"] = gc.tensor(0.5)
momentum_on:
    s.make_optimizer = lambda model: optim.SGD(model.parameters(), lr=LEARNING_RATE)
    yield
    s.optimizer.param_groups[0]["momentum"] = 0.9
nesterov_on: s.optimizer.param_groups[0]["nesterov"] = True
parameter_frozen_in_training: s.layer.weight.requires_grad_(False)
parameter_unfrozen_in_training: s.layer.weight.requires_grad_(False) => s.layer.weight.requires_grad_(True)
state_of_one_parameter_deleted: s.optimizer.state.pop(s.layer.weight, None)
state_of_one_parameter_replaced:
    s.make_optimizer = lambda model: optim.Adam(model.parameters(), lr=LEARNING_RATE)
    yield
    s.optimizer.state[s.layer.weight]["exp_avg"] = gc.full((4, 4), 0.1)
eager_step_between:
    s.model(s.next_input()).sum().backward()
    s.optimizer.step()
    s.model.zero_grad()
update_rule_of_the_class_replaced:
    class Own(optim.SGD):
        pass
    s.make_optimizer = lambda model: Own(model.parameters(), lr=LEARNING_RATE)
    yield
    rule = optim.SGD.update
    Own.update = lambda self, param, grad, state, hyper: rule(self, param, grad * 2, state, hyper)
step_pre_hook:
    weight = s.model.head.weight
    def hook(optimizer, args, kwargs):
        with gc.no_grad():
            weight.mul_(0.5)
    s.optimizer.register_step_pre_hook(hook)
step_post_hook:
    weight = s.model.head.weight
    def hook(optimizer, args, kwargs):
        with gc.no_grad():
            weight.mul_(0.5)
    s.optimizer.register_step_post_hook(hook)
""",
    modes=OPTIMIZER_MODES,
)

# ---- losses

changes(
    """
loss_module_reduction: s.loss = nn.MSELoss() => s.loss.reduction = "sum"
loss_closure_number:
    scale = {"by": 1.0}
    s.loss = lambda output, target: ((output - target) ** 2).mean() * scale["by"]
    yield
    scale["by"] = 3.0
loss_closure_tensor_written:
    weights = gc.tensor([1.0, 2.0, 3.0])
    s.loss = lambda output, target: ((output - target) ** 2 * weights).mean()
    yield
    weights.mul_(2)
loss_closure_tensor_replaced:
    weights = gc.tensor([1.0, 2.0, 3.0])
    s.loss = lambda output, target: ((output - target) ** 2 * weights).mean()
    yield
    weights = gc.tensor([3.0, 2.0, 1.0])
loss_module_weight_replaced:
    class Weighted(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weights", gc.tensor([1.0, 2.0, 3.0]))
        def forward(self, output, target):
            return ((output - target) ** 2 * self.weights).mean()
    s.loss = Weighted()
    yield
    s.loss.weights = gc.tensor([3.0, 0.0, 1.0])
loss_defaults_replaced:
    def loss(output, target, scale: float = 1.0):
        return ((output - target) ** 2).mean() * scale
    s.loss = loss
    yield
    loss.__defaults__ = (3.0,)
""",
    modes=("step",),
)

# ---- schedules

SCHEDULES: dict[str, Callable[[Any], Any]] = {
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 0.9**epoch),
    "MultiplicativeLR": lambda o: lr_scheduler.MultiplicativeLR(o, lambda epoch: 0.9),
    "StepLR": lambda o: lr_scheduler.StepLR(o, 1, 0.5),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [1, 3], 0.5),
    "ConstantLR": lambda o: lr_scheduler.ConstantLR(o, 0.5, 2),
    "LinearLR": lambda o: lr_scheduler.LinearLR(o, 0.5, total_iters=3),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.5),
    "PolynomialLR": lambda o: lr_scheduler.PolynomialLR(o, 3),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 3),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.ConstantLR(o, 0.5, 2), lr_scheduler.ExponentialLR(o, 0.5)], [2]
    ),
    "ChainedScheduler": lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.ExponentialLR(o, 0.5)]),
    "CyclicLR": lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.1, 2),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=9),
    "ReduceLROnPlateau": lambda o: _Plateau(o),
}
NO_SCHEDULES = {"LRScheduler"}


class _Plateau:
    """Schedule driven by a constant metric, which never improves."""

    def __init__(self, optimizer: Any):
        self.schedule = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)

    def step(self) -> None:
        self.schedule.step(1.0)


def schedules() -> list[str]:
    """Return the names of all schedules in the package."""
    exported = {
        name: value
        for name, value in vars(lr_scheduler).items()
        if inspect.isclass(value) and issubclass(value, lr_scheduler.LRScheduler) and not name.startswith("_")
    }
    return sorted(set(exported) - NO_SCHEDULES)


_SCHEDULE = """
{name}.stepped:
    s.prepare()
    s.scheduler = make(s.optimizer)
    yield
{name}.begun: s.scheduler = make(s.optimizer)
{name}.ended:
    s.prepare()
    s.scheduler = make(s.optimizer)
    yield
    s.scheduler = None
"""
for _name, _make in SCHEDULES.items():
    changes(_SCHEDULE.format(name=_name), {"make": _make}, ("lean",), OPTIMIZER_MODES)
changes(
    """
schedule_gamma:
    s.prepare()
    s.scheduler = lr_scheduler.StepLR(s.optimizer, 1, 0.5)
    yield
    s.scheduler.gamma = 0.1
schedule_base_rates:
    s.prepare()
    s.scheduler = lr_scheduler.LambdaLR(s.optimizer, lambda epoch: 0.9**epoch)
    yield
    s.scheduler.base_lrs = [0.5]
schedule_state_loaded:
    s.prepare()
    s.scheduler = lr_scheduler.ExponentialLR(s.optimizer, 0.5)
    state = s.scheduler.state_dict()
    yield
    s.scheduler.load_state_dict(state)
schedule_of_momentum:
    s.prepare()
    s.scheduler = lr_scheduler.CyclicLR(s.optimizer, 0.01, 0.1, 2, cycle_momentum=True)
    yield
""",
    kinds=("lean",),
    modes=OPTIMIZER_MODES,
)
