"""Random training programs: compiled in every way they leave the state that eager mode leaves.

``python -m tools.nets.training --seconds N --seed S --results FILE``; a case is named ``way:number``.
"""

from __future__ import annotations

import itertools
import random
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import graphc as gc
from graphc import nn, optim
from graphc.base.difference import EXACT, Tolerance, difference, largest
from graphc.errors import GraphcError
from graphc.nn import functional as F
from graphc.optim import lr_scheduler as schedules
from graphc.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tools.nets.run import DIFFERENT, EQUAL, FAILED, REFUSED, Net, Outcome, main
from tools.nets.training_events import EVENTS
from tools.nets.training_models import WIDTH, DrawnModel, f64

WAYS = ("function", "model", "part", "native", "budget")
"""The training function compiled; a loop over the compiled model; over a model with a compiled layer, and native
updates; eager forward with native updates; the compiled function with a memory budget."""
CALLS = 6
CLEARED = ("first", "zero", "model")
"""Cases in which the function itself clears gradients before it creates new ones, so that compiled code does not store
them."""
State = dict[str, Any]
TOLERANCE = 1e-10
"""Relative to the largest element, or to 1."""


def _has_momentum(optimizer: Any) -> bool:
    return not {"momentum", "betas"}.isdisjoint(optimizer.param_groups[0])


OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda p, c: optim.SGD(p, lr=0.05, momentum=c.choice([0.0, 0.9]), weight_decay=c.choice([0.0, 0.01])),
    "nesterov": lambda p, c: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, dampening=0.0),
    "damped": lambda p, c: optim.SGD(p, lr=0.05, momentum=0.8, dampening=0.3),
    "adam": lambda p, c: optim.Adam(p, lr=0.01, eps=1e-4, amsgrad=c.random() < 0.5),
    "adamw": lambda p, c: optim.AdamW(p, lr=0.01, eps=1e-4, weight_decay=c.choice([0.0, 0.05])),
    "adamax": lambda p, c: optim.Adamax(p, lr=0.01, eps=1e-4),
    "nadam": lambda p, c: optim.NAdam(p, lr=0.01, eps=1e-4),
    "radam": lambda p, c: optim.RAdam(p, lr=0.01, eps=1e-4),
    "rmsprop": lambda p, c: optim.RMSprop(p, lr=0.01, eps=1e-4, centered=c.random() < 0.5, momentum=0.3),
    "adagrad": lambda p, c: optim.Adagrad(p, lr=0.02, eps=1e-4, lr_decay=0.01),
    "adadelta": lambda p, c: optim.Adadelta(p, lr=0.5),
    "asgd": lambda p, c: optim.ASGD(p, lr=0.02, t0=2),
}
SCHEDULES: dict[str, Any] = {
    "none": None,
    "step": lambda o: schedules.StepLR(o, 2, 0.5),
    "cosine": lambda o: schedules.CosineAnnealingLR(o, 5),
    "warm": lambda o: schedules.LinearLR(o, 0.1, total_iters=3),
    "one": lambda o: schedules.OneCycleLR(o, 0.1, total_steps=10, cycle_momentum=_has_momentum(o)),
    "zero": lambda o: schedules.LambdaLR(o, lambda step: 0.0 if step % 2 else 1.0),
}


class Scene:
    """One training: a model, optimizers, the body of the loop, and the state between its steps."""

    def __init__(self, number: int, mode: str):
        gc.manual_seed(number)
        self.choice = choice = random.Random(number + 1)
        self.model = DrawnModel(number).double()
        self.way = mode
        self.batch, self.weight = 40 if mode == "budget" or number % 5 == 4 else 3, 1.0
        self.extra, self.has_extra = nn.Parameter(gc.ones(WIDTH, dtype=f64)), False
        self.handles: list[Any] = []
        self.kept: list[tuple[str, Any]] = []
        self.told: list[Any] = []
        self.optimizers = self._optimizers()
        name = choice.choice(list(SCHEDULES))
        self.schedule = SCHEDULES[name] and SCHEDULES[name](self.optimizers[0])
        self.average = AveragedModel(self.model, multi_avg_fn=get_ema_multi_avg_fn(0.8))
        self.flags = {name for name, share in FLAGS.items() if choice.random() < share}
        self.clears = choice.choice(["first", "first", "last", "zero", "model", "never"])
        self.call: Any = self.model
        self.step: Any = self.train
        self._compile()
        gc.manual_seed(number + 1)

    def _optimizers(self) -> list[Any]:
        choice = self.choice
        params = list(self.model.parameters())
        make = OPTIMIZERS[choice.choice(list(OPTIMIZERS))]
        if choice.random() < 0.25:
            half = len(params) // 2
            return [make(params[:half], choice), OPTIMIZERS["adam"](params[half:], choice)]
        if choice.random() < 0.4:
            vectors = [p for p in params if p.dim() == 1]
            others = [p for p in params if p.dim() != 1]
            return [make([{"params": others}, {"params": vectors, "lr": 0.03, "weight_decay": 0.0}], choice)]
        return [make(params, choice)]

    def _compile(self) -> None:
        for optimizer in self.optimizers:
            optimizer.native = False
        if self.way == "function":
            self.step = gc.compile(self.train)
        elif self.way == "budget":
            self.step = gc.compile(self.train, memory="90%")
        elif self.way == "model":
            self.call = gc.compile(self.model)
        elif self.way == "part" and len(self.model.layers):
            layer: Any = self.model.layers[0]
            layer.forward = gc.compile(layer.forward)
        if self.way in ("model", "part", "native"):
            for optimizer in self.optimizers:
                optimizer.native = None if self.way == "model" else True

    # ---- the body of the loop

    def loss(self, x: Any, y: Any) -> Any:
        """Return the loss, with its auxiliary results."""
        out = self.call(x)
        if isinstance(out, tuple):
            loss = F.mse_loss(out[0], y) + 0.1 * out[1]
        elif isinstance(out, dict):
            loss = F.mse_loss(out["out"], y) + 0.1 * out["size"].mean()
        else:
            loss = F.smooth_l1_loss(out, y)
        if self.has_extra:
            loss = loss + (self.extra * y).mean() ** 2
        if "penalty" in self.flags:
            loss = loss + 0.01 * sum((p * p).sum() for p in self.model.parameters() if p.requires_grad)
        return loss * self.weight

    def train(self, x: Any, y: Any, begin: bool, update: bool) -> Any:
        """Return one step of the loop."""
        if begin and self.clears in CLEARED:
            self.clear()
        results = self.make_gradients(self.loss(x, y))
        if not update:
            return results
        self.change_gradients(results)
        self.update(results)
        if self.clears == "last":
            self.clear()
        return results

    def make_gradients(self, loss: Any) -> list[Any]:
        """Run the backward pass; return the results of the step."""
        results: list[Any] = [loss]
        if "double" in self.flags and self.model.scale.requires_grad and "scaled" in self.model.kinds:
            (g,) = gc.autograd.grad(loss, [self.model.scale], create_graph=True)
            loss = loss + 0.1 * (g * g).sum()
        loss.backward(retain_graph="twice" in self.flags)
        if "twice" in self.flags:
            (loss * 0.5).backward()
        if "read" in self.flags:
            results += [p.grad.abs().sum() for p in self.model.parameters() if p.grad is not None]
        return results

    def update(self, results: list[Any]) -> None:
        """Step the optimizers, with the work around them."""
        if "decay" in self.flags:
            with gc.no_grad():
                for p in self.model.parameters():
                    p.mul_(0.999)
        for optimizer in self.optimizers:
            optimizer.step()
        if "average" in self.flags:
            self.average.update_parameters(self.model)
        if "after" in self.flags:
            with gc.no_grad():
                results.append(self.model.scale.sum() + self.model.shared.weight.norm())

    def clear(self) -> None:
        """Take the gradients away."""
        if self.clears == "model":
            self.model.zero_grad()
            return
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=self.clears != "zero")

    def change_gradients(self, results: list[Any]) -> None:
        """Change the gradients before their use."""
        params = list(self.model.parameters())
        if "scale" in self.flags:
            for p in params:
                if p.grad is not None:
                    p.grad.mul_(0.5)
        if "set" in self.flags and (gradient := self.model.scale.grad) is not None:
            self.model.scale.grad = gradient * 2
        if "drop" in self.flags:
            bias: Any = self.model.shared.bias
            bias.grad = None
        if "value" in self.flags:
            nn.utils.clip_grad_value_(params, 0.3)
        if "norm" in self.flags:
            results.append(nn.utils.clip_grad_norm_(params, 0.5))
        if "norm_inf" in self.flags:
            results.append(nn.utils.clip_grad_norm_(params, 0.1, float("inf")))

    def drop(self, state: State) -> None:
        """Take the gradients away that compiled code has not kept."""
        for i, optimizer in enumerate(self.optimizers):
            params = [p for group in optimizer.param_groups for p in group["params"]]
            for p, has_gradient in zip(params, state[f"has gradients {i}"], strict=True):
                p.grad = p.grad if has_gradient else None

    # ---- comparison

    @staticmethod
    def tensors(nested: Any) -> list[Any]:
        """Return the tensors of a result."""
        if isinstance(nested, dict):
            return list(nested.values())
        return list(nested) if isinstance(nested, (tuple, list)) else [nested]

    def state(self) -> dict[str, Any]:
        """Return copies of everything that a step may change."""
        snapshot: dict[str, Any] = {}
        params = [*self.model.named_parameters(), ("extra", self.extra)]
        for name, p in params:
            snapshot[f"param {name}"] = _copy(p)
            snapshot[f"grad {name}"] = None if p.grad is None else _copy(p.grad)
        for name, b in self.model.named_buffers():
            snapshot[f"buffer {name}"] = _copy(b)
        for name, t in [*self.average.named_parameters(), *self.average.named_buffers()]:
            snapshot[f"average {name}"] = _copy(t)
        for i, optimizer in enumerate(self.optimizers):
            snapshot |= _state_of(optimizer, i, {id(p): name for name, p in params})
        snapshot["random"] = _copy(gc.get_rng_state())
        snapshot["count"] = self.model.count
        snapshot["requires"] = [p.requires_grad for _, p in params]
        for i, (name, tensor) in enumerate(self.kept):
            snapshot[f"{name} kept {i}"] = None if tensor is None else _copy(tensor)
        snapshot["told"] = [*self.told]
        return snapshot


def _state_of(optimizer: Any, i: int, names: dict[int, str]) -> State:
    snapshot: State = {f"steps {i}": optimizer.step_count}
    snapshot[f"has gradients {i}"] = [p.grad is not None for g in optimizer.param_groups for p in g["params"]]
    for p, state in optimizer.state.items():
        for key, value in state.items():
            snapshot[f"slot {i} {names.get(id(p), 'gone')} {key}"] = _copy(value)
    for j, group in enumerate(optimizer.param_groups):
        for key, value in group.items():
            if key != "params":
                snapshot[f"group {i} {j} {key}"] = _copy(value) if isinstance(value, gc.Tensor) else value
    return snapshot


FLAGS = {
    "penalty": 0.2,
    "double": 0.2,
    "twice": 0.15,
    "read": 0.25,
    "decay": 0.15,
    "average": 0.25,
    "after": 0.2,
    "scale": 0.2,
    "set": 0.15,
    "drop": 0.1,
    "value": 0.2,
    "norm": 0.35,
    "norm_inf": 0.1,
}


def _copy(tensor: Any) -> np.ndarray:
    return tensor.detach().numpy().copy()


def run(number: int, mode: str, dropped: Sequence[State] = ()) -> Iterator[tuple[str, Any, State, Scene]]:
    """Yield the result of each call or its error, with the state after it and the scene.

    ``dropped`` are the states after the calls of compiled code: gradients that it need not store are dropped here.
    """
    scene = Scene(number, mode)
    choice, chance = random.Random(number + 2), np.random.default_rng(number)
    cycle = choice.choice([1, 1, 2])
    said: list[str] = []
    for i in range(CALLS):
        said += _events(scene, choice) if i else []
        said.append("call")
        x, y = (gc.tensor(chance.standard_normal((scene.batch, WIDTH))) for _ in range(2))
        begins, updates = i % cycle == 0, i % cycle == cycle - 1
        try:
            result = scene.step(x, y, begins, updates)
        except GraphcError as error:
            yield " ".join(said), error, scene.state(), scene
            return
        if begins and updates and scene.clears in CLEARED and i < len(dropped):
            scene.drop(dropped[i])
        values = [_copy(t) for t in result]
        if choice.random() < 0.3:
            scene.kept += [("result", t.detach()) for t in result]
        if scene.schedule is not None and updates:
            scene.schedule.step()
        yield " ".join(said), values, scene.state(), scene


def _events(scene: Scene, choice: random.Random) -> list[str]:
    names = [choice.choice(list(EVENTS)) for _ in range(choice.choice([0, 1, 1, 2]))]
    for name in names:
        EVENTS[name](scene, random.Random(choice.random()))
    return names


def judge(case: str) -> Outcome:
    """Compare compiled code with eager mode, call by call."""
    mode, name = case.split(":")
    number = int(name)
    with np.errstate(all="ignore"):
        try:
            compiled, fault = [*run(number, mode)], ""
        except Exception:
            compiled, fault = [], traceback.format_exc()
        dropped = [state for _, _, state, _ in compiled] if mode in ("function", "budget") else []
        eager = [*run(number, "eager", dropped)]
        return Outcome(FAILED, f"{_about(eager)}: {fault}") if fault else _compare(eager, compiled, _about(eager))


def _about(eager: list[Any]) -> str:
    scene = eager[0][3]
    optimizers = [type(o).__name__ for o in scene.optimizers]
    return f"{scene.model.kinds} {scene.clears} {sorted(scene.flags)} {optimizers}"


def _compare(eager: list[Any], compiled: list[Any], about: str) -> Outcome:
    for (label, expected, state, _), (_, actual, after, _) in zip(eager, compiled, strict=False):
        if isinstance(expected, GraphcError):
            both = isinstance(actual, GraphcError)
            return Outcome(EQUAL, "both raise") if both else Outcome(FAILED, f"{about} {label}: only eager: {expected}")
        if isinstance(actual, GraphcError):
            return Outcome(REFUSED, f"{about} {label}: {type(actual).__name__} {actual}")
        differs = [*_differences({"result": expected, **state}, {"result": actual, **after})]
        if differs:
            return Outcome(DIFFERENT, f"{about} {label}: {'; '.join(differs[:4])} ({len(differs)})")
    return Outcome(EQUAL)


def _differences(expected: State, actual: State) -> Iterator[str]:
    for name in [*expected, *[n for n in actual if n not in expected]]:
        if name not in expected or name not in actual:
            yield f"{name}: only in {'eager mode' if name in expected else 'compiled code'}"
        elif not _same(expected[name], actual[name]):
            yield f"{name}: {_short(expected[name])} in eager mode, {_short(actual[name])} compiled"


def _short(value: Any) -> Any:
    return value.ravel()[:3] if isinstance(value, np.ndarray) else value


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return bool(a is b or (a is not None and b is not None and a == b))
    allowed = Tolerance(0.0, TOLERANCE * max(1.0, largest(a))) if a.dtype.kind == "f" else EXACT
    return difference("", b, a, allowed, same_dtype=True).is_within


def cases(seed: int) -> Iterator[str]:
    """Yield each way in turn, with new programs."""
    for number in itertools.count(seed * 1_000_000):
        yield f"{WAYS[number % len(WAYS)]}:{number}"


NET = Net("training", __doc__ or "", cases, judge)

if __name__ == "__main__":
    sys.exit(main(NET))
