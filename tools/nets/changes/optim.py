"""Changes of optimizers and schedules: numbers of parameter groups, state, groups, hooks, losses, rates."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import graphc as gc
from graphc import nn, optim
from graphc.optim import lr_scheduler
from tools.nets.changes.scene import LEARNING_RATE, Scene
from tools.nets.changes.table import OPTIMIZER_MODES, add, change

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


def _maker(name: str, **numbers: Any) -> Callable[[Any], Any]:
    kind = optimizers()[name]

    def make(model: Any) -> Any:
        chosen = [p for p in model.parameters() if p.ndim == 2 or name not in ONLY_MATRICES]
        return kind(chosen, **numbers)

    return make


def numbers_of(name: str) -> dict[str, Any]:
    """Return the numbers and flags of an optimizer's groups, as they are by default."""
    group = _maker(name, **_FIRST.get(name, {}))(nn.Linear(2, 2)).param_groups[0]
    return {key: value for key, value in group.items() if key != "params"}


_FIRST: dict[str, dict[str, Any]] = {"SGD": {"lr": LEARNING_RATE, "momentum": 0.9}}


def other(value: Any) -> Any:
    """Return a value in the place of another one, of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value * 0.5 + (0.05 if value == 0 else 0.0)
    if isinstance(value, tuple):
        return tuple(other(v) if isinstance(v, (int, float)) else v for v in value)
    return value


def _number_changes(name: str, key: str, value: Any) -> None:
    def changed(s: Scene) -> Iterator[None]:
        s.make_optimizer = _maker(name, **_FIRST.get(name, {}))
        yield
        s.optimizer.param_groups[0][key] = other(value)

    add(f"{name}.{key}", changed, ("lean",), OPTIMIZER_MODES)


def _general_changes(name: str) -> None:
    def stepped(s: Scene) -> Iterator[None]:
        s.make_optimizer = _maker(name, **_FIRST.get(name, {}))
        yield

    def state_cleared(s: Scene) -> Iterator[None]:
        s.make_optimizer = _maker(name, **_FIRST.get(name, {}))
        yield
        s.optimizer.state.clear()

    def state_loaded(s: Scene) -> Iterator[None]:
        s.make_optimizer = _maker(name, **_FIRST.get(name, {}))
        yield
        state = copy.deepcopy(s.optimizer.state_dict())
        state["param_groups"][0]["lr"] = 0.02
        s.optimizer.load_state_dict(state)

    def state_of_the_start_loaded(s: Scene) -> Iterator[None]:
        s.make_optimizer = _maker(name, **_FIRST.get(name, {}))
        s.prepare()
        state = copy.deepcopy(s.optimizer.state_dict())
        yield
        s.optimizer.load_state_dict(state)

    def state_written(s: Scene) -> Iterator[None]:
        s.make_optimizer = _maker(name, **_FIRST.get(name, {}))
        yield
        for entries in s.optimizer.state.values():
            for value in entries.values():
                if isinstance(value, gc.Tensor) and value.ndim:
                    value.mul_(0.5)

    for function in (stepped, state_cleared, state_loaded, state_of_the_start_loaded, state_written):
        add(f"{name}.{function.__name__}", function, ("lean",), OPTIMIZER_MODES)


for _name in optimizers():
    for _key, _value in numbers_of(_name).items():
        _number_changes(_name, _key, _value)
    _general_changes(_name)


# ---- groups


@change(modes=OPTIMIZER_MODES)
def group_added(s: Scene) -> Iterator[None]:
    s.make_optimizer = lambda model: optim.SGD(model.body.parameters(), lr=LEARNING_RATE)
    yield
    s.optimizer.add_param_group({"params": list(s.model.head.parameters()), "lr": 0.5})


@change(modes=OPTIMIZER_MODES)
def parameter_taken_out_of_a_group(s: Scene) -> None:
    s.optimizer.param_groups[0]["params"].pop()


@change(modes=OPTIMIZER_MODES)
def parameter_of_a_group_replaced(s: Scene) -> None:
    old = s.model.head.weight
    s.model.head.weight = nn.Parameter(gc.full((3, 4), 0.25))
    params = s.optimizer.param_groups[0]["params"]
    params[[p is old for p in params].index(True)] = s.model.head.weight


@change(modes=OPTIMIZER_MODES)
def parameter_replaced_in_the_model_only(s: Scene) -> None:
    s.model.head.weight = nn.Parameter(gc.full((3, 4), 0.25))


@change(modes=OPTIMIZER_MODES)
def groups_exchanged(s: Scene) -> Iterator[None]:
    s.make_optimizer = lambda m: optim.SGD(
        [{"params": m.body.parameters(), "lr": 0.1}, {"params": m.head.parameters(), "lr": 0.01}], lr=0.1
    )
    yield
    a, b = s.optimizer.param_groups
    a["lr"], b["lr"] = b["lr"], a["lr"]


@change(modes=OPTIMIZER_MODES)
def group_deleted(s: Scene) -> Iterator[None]:
    s.make_optimizer = lambda m: optim.SGD(
        [{"params": m.body.parameters(), "lr": 0.1}, {"params": m.head.parameters(), "lr": 0.01}], lr=0.1
    )
    yield
    del s.optimizer.param_groups[1]


@change(modes=OPTIMIZER_MODES)
def group_replaced(s: Scene) -> None:
    s.optimizer.param_groups[0] = {**s.optimizer.param_groups[0], "lr": 0.5}


@change(modes=OPTIMIZER_MODES)
def rate_of_all_groups(s: Scene) -> None:
    for group in s.optimizer.param_groups:
        group["lr"] *= 0.1


@change(modes=OPTIMIZER_MODES)
def rate_zero(s: Scene) -> None:
    s.optimizer.param_groups[0]["lr"] = 0.0


@change(modes=OPTIMIZER_MODES)
def rate_from_zero(s: Scene) -> Iterator[None]:
    s.make_optimizer = lambda model: optim.SGD(model.parameters(), lr=0.0)
    yield
    s.optimizer.param_groups[0]["lr"] = 0.1


@change(modes=OPTIMIZER_MODES)
def rate_is_a_tensor(s: Scene) -> Iterator[None]:
    rate: Any = gc.tensor(0.1)
    s.make_optimizer = lambda model: optim.SGD(model.parameters(), lr=rate)
    yield
    rate.fill_(0.5)


@change(modes=OPTIMIZER_MODES)
def rate_becomes_a_tensor(s: Scene) -> None:
    s.optimizer.param_groups[0]["lr"] = gc.tensor(0.5)


@change(modes=OPTIMIZER_MODES)
def momentum_on(s: Scene) -> Iterator[None]:
    s.make_optimizer = lambda model: optim.SGD(model.parameters(), lr=LEARNING_RATE)
    yield
    s.optimizer.param_groups[0]["momentum"] = 0.9


@change(modes=OPTIMIZER_MODES)
def nesterov_on(s: Scene) -> None:
    s.optimizer.param_groups[0]["nesterov"] = True


@change(modes=OPTIMIZER_MODES)
def parameter_frozen_in_training(s: Scene) -> None:
    s.layer.weight.requires_grad_(False)


@change(modes=OPTIMIZER_MODES)
def parameter_unfrozen_in_training(s: Scene) -> Iterator[None]:
    s.layer.weight.requires_grad_(False)
    yield
    s.layer.weight.requires_grad_(True)


@change(modes=OPTIMIZER_MODES)
def state_of_one_parameter_deleted(s: Scene) -> None:
    s.optimizer.state.pop(s.layer.weight, None)


@change(modes=OPTIMIZER_MODES)
def state_of_one_parameter_replaced(s: Scene) -> Iterator[None]:
    s.make_optimizer = lambda model: optim.Adam(model.parameters(), lr=LEARNING_RATE)
    yield
    s.optimizer.state[s.layer.weight]["exp_avg"] = gc.full((4, 4), 0.1)


@change(modes=OPTIMIZER_MODES)
def eager_step_between(s: Scene) -> None:
    s.model(s.next_input()).sum().backward()
    s.optimizer.step()
    s.model.zero_grad()


@change(modes=OPTIMIZER_MODES)
def update_rule_of_the_class_replaced(s: Scene) -> Iterator[None]:
    class Own(optim.SGD):
        pass

    s.make_optimizer = lambda model: Own(model.parameters(), lr=LEARNING_RATE)
    yield
    rule = optim.SGD.update
    Own.update = lambda self, param, grad, state, hyper: rule(self, param, grad * 2, state, hyper)


def _step_hook(name: str, register: Callable[[Any, Callable[..., Any]], Any]) -> None:
    def changed(s: Scene) -> None:
        weight = s.model.head.weight

        def hook(optimizer: Any, args: Any, kwargs: Any) -> None:
            with gc.no_grad():
                weight.mul_(0.5)

        register(s.optimizer, hook)

    add(name, changed, modes=OPTIMIZER_MODES)


_step_hook("step_pre_hook", lambda optimizer, hook: optimizer.register_step_pre_hook(hook))
_step_hook("step_post_hook", lambda optimizer, hook: optimizer.register_step_post_hook(hook))


# ---- losses


@change(modes=("step",))
def loss_module_reduction(s: Scene) -> Iterator[None]:
    s.loss = nn.MSELoss()
    yield
    s.loss.reduction = "sum"


@change(modes=("step",))
def loss_closure_number(s: Scene) -> Iterator[None]:
    scale = {"by": 1.0}
    s.loss = lambda output, target: ((output - target) ** 2).mean() * scale["by"]
    yield
    scale["by"] = 3.0


@change(modes=("step",))
def loss_closure_tensor_written(s: Scene) -> Iterator[None]:
    weights = gc.tensor([1.0, 2.0, 3.0])
    s.loss = lambda output, target: ((output - target) ** 2 * weights).mean()
    yield
    weights.mul_(2)


@change(modes=("step",))
def loss_closure_tensor_replaced(s: Scene) -> Iterator[None]:
    weights = gc.tensor([1.0, 2.0, 3.0])
    s.loss = lambda output, target: ((output - target) ** 2 * weights).mean()
    yield
    weights = gc.tensor([3.0, 2.0, 1.0])


@change(modes=("step",))
def loss_module_weight_replaced(s: Scene) -> Iterator[None]:
    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weights", gc.tensor([1.0, 2.0, 3.0]))

        def forward(self, output: Any, target: Any) -> Any:
            return ((output - target) ** 2 * self.weights).mean()

    s.loss = Weighted()
    yield
    s.loss.weights = gc.tensor([3.0, 0.0, 1.0])


@change(modes=("step",))
def loss_defaults_replaced(s: Scene) -> Iterator[None]:
    def loss(output: Any, target: Any, scale: float = 1.0) -> Any:
        return ((output - target) ** 2).mean() * scale

    s.loss = loss
    yield
    loss.__defaults__ = (3.0,)


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


def _schedule_changes(name: str, make: Callable[[Any], Any]) -> None:
    def stepped(s: Scene) -> Iterator[None]:
        s.prepare()
        s.scheduler = make(s.optimizer)
        yield

    def begun(s: Scene) -> None:
        s.scheduler = make(s.optimizer)

    def ended(s: Scene) -> Iterator[None]:
        s.prepare()
        s.scheduler = make(s.optimizer)
        yield
        s.scheduler = None

    for function in (stepped, begun, ended):
        add(f"{name}.{function.__name__}", function, ("lean",), OPTIMIZER_MODES)


for _name, _make in SCHEDULES.items():
    _schedule_changes(_name, _make)


@change("lean", modes=OPTIMIZER_MODES)
def schedule_gamma(s: Scene) -> Iterator[None]:
    s.prepare()
    s.scheduler = lr_scheduler.StepLR(s.optimizer, 1, 0.5)
    yield
    s.scheduler.gamma = 0.1


@change("lean", modes=OPTIMIZER_MODES)
def schedule_base_rates(s: Scene) -> Iterator[None]:
    s.prepare()
    s.scheduler = lr_scheduler.LambdaLR(s.optimizer, lambda epoch: 0.9**epoch)
    yield
    s.scheduler.base_lrs = [0.5]


@change("lean", modes=OPTIMIZER_MODES)
def schedule_state_loaded(s: Scene) -> Iterator[None]:
    s.prepare()
    s.scheduler = lr_scheduler.ExponentialLR(s.optimizer, 0.5)
    state = s.scheduler.state_dict()
    yield
    s.scheduler.load_state_dict(state)


@change("lean", modes=OPTIMIZER_MODES)
def schedule_of_momentum(s: Scene) -> Iterator[None]:
    s.prepare()
    s.scheduler = lr_scheduler.CyclicLR(s.optimizer, 0.01, 0.1, 2, cycle_momentum=True)
    yield
