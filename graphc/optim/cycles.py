"""Cyclic schedules: repeated cycles between two rates, and one cycle for a training."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from graphc.base.errors import AttributeValueError
from graphc.optim.optimizer import Optimizer
from graphc.optim.schedule import LRScheduler


class CyclicLR(LRScheduler):
    """Cycle from ``base_lr`` up to ``max_lr`` and back, step by step (Smith 2017, "Cyclical Learning Rates").

    ``mode`` sets the height of later cycles: ``triangular`` keeps it, ``triangular2`` halves it each time,
    ``exp_range`` multiplies it by ``gamma`` to the power of the step. ``scale_fn`` (of the cycle or the iteration, by
    ``scale_mode``) replaces it. With ``cycle_momentum`` the momentum (or first beta) moves in the opposite direction.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ):
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise AttributeValueError(
                f"CyclicLR: unknown mode {mode!r}", remedy="use triangular, triangular2 or exp_range"
            )
        count = len(optimizer.param_groups)
        self.max_lrs = _each("max_lr", max_lr, count)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, _each("base_lr", base_lr, count), strict=True):
                group["lr"] = group["initial_lr"] = rate
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma = mode, gamma
        self.scale_fn, self.scale_mode = scale_fn, scale_mode
        self.cycle_momentum = cycle_momentum
        self.base_momentum, self.max_momentum = base_momentum, max_momentum
        if cycle_momentum:
            if any("betas" not in g and "momentum" not in g for g in optimizer.param_groups):
                raise AttributeValueError("CyclicLR: the optimizer has no momentum", remedy="pass cycle_momentum=False")
            for group in optimizer.param_groups:
                _set_momentum(group, max_momentum)
        super().__init__(optimizer, last_epoch)

    def _scale(self, cycle: float) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.mode == "triangular2":
            return 1.0 / 2.0 ** (cycle - 1)
        return self.gamma**self.last_epoch if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[float]:
        """Return the rates of the step, and set the momentum."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self._scale(cycle)
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                _set_momentum(group, self.max_momentum - (self.max_momentum - self.base_momentum) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]


def _each(name: str, value: Any, count: int) -> list[float]:
    values = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(values) != count:
        raise AttributeValueError(f"CyclicLR: {len(values)} values of {name} for {count} groups")
    return values


class OneCycleLR(LRScheduler):
    """Rise from ``max_lr / div_factor`` to ``max_lr``, then fall far below, step by step (Smith and Topin 2018).

    The length is ``total_steps``, or ``epochs * steps_per_epoch``. ``three_phase`` first returns to the start. With
    ``cycle_momentum`` the momentum (or first beta) moves in the opposite direction.

    Example:
        >>> import graphc as gc
        >>> optimizer = gc.optim.SGD(gc.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gc.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
        >>> print(f"{schedule.get_last_lr()[0]:.2f}")
        0.04
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ):
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if not 0 <= pct_start <= 1:
            raise AttributeValueError(f"OneCycleLR: pct_start {pct_start} is not between 0 and 1")
        if anneal_strategy not in ("cos", "linear"):
            raise AttributeValueError(f'OneCycleLR: anneal_strategy {anneal_strategy!r} is neither "cos" nor "linear"')
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        peak = pct_start * self.total_steps - 1
        names = ["initial_lr", "max_lr", "min_lr"]
        ends = [peak, self.total_steps - 1]
        if three_phase:
            ends = [peak, 2 * peak, self.total_steps - 1]
            names.insert(2, "initial_lr")
        self.phases = [(end, names[i], names[i + 1]) for i, end in enumerate(ends)]
        if last_epoch == -1:
            self._prepare(optimizer, max_lr, div_factor, final_div_factor, base_momentum, max_momentum)
        super().__init__(optimizer, last_epoch)

    def _prepare(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        div_factor: float,
        final_div_factor: float,
        base_momentum: float,
        max_momentum: float,
    ) -> None:
        count = len(optimizer.param_groups)
        highest = list(max_lr) if isinstance(max_lr, (list, tuple)) else [max_lr] * count
        if len(highest) != count:
            raise AttributeValueError(f"OneCycleLR: {len(highest)} values of max_lr for {count} groups")
        for group, high in zip(optimizer.param_groups, highest, strict=True):
            group["initial_lr"] = high / div_factor
            group["max_lr"] = high
            group["min_lr"] = group["initial_lr"] / final_div_factor
            if self.cycle_momentum:
                if "betas" not in group and "momentum" not in group:
                    raise AttributeValueError(
                        "OneCycleLR: the optimizer has no momentum", remedy="pass cycle_momentum=False"
                    )
                group["base_momentum"], group["max_momentum"] = base_momentum, max_momentum
                _set_momentum(group, max_momentum)

    def _between(self, start: float, end: float, fraction: float) -> float:
        if self.anneal_strategy == "linear":
            return start + (end - start) * fraction
        return end + (start - end) / 2.0 * (1 + math.cos(math.pi * fraction))

    def get_lr(self) -> list[float]:
        """Return the rates of the step, and set the momentum."""
        step = self.last_epoch
        if step > self.total_steps:
            raise AttributeValueError(f"OneCycleLR: step {step} after the last one, {self.total_steps}")
        begin = 0.0
        for i, (end, start_name, end_name) in enumerate(self.phases):
            if step <= end or i == len(self.phases) - 1:
                fraction = (step - begin) / (end - begin)
                return [self._rate(group, fraction, start_name, end_name) for group in self.optimizer.param_groups]
            begin = end
        raise AssertionError("the last phase has no end")

    def _rate(self, group: dict[str, Any], fraction: float, start_name: str, end_name: str) -> float:
        if self.cycle_momentum:
            low, high = group["base_momentum"], group["max_momentum"]
            start, end = (high if name != "max_lr" else low for name in (start_name, end_name))
            _set_momentum(group, self._between(start, end, fraction))
        return self._between(group[start_name], group[end_name], fraction)


def _total_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is None:
        if epochs is None or steps_per_epoch is None:
            raise AttributeValueError("OneCycleLR: pass total_steps, or epochs and steps_per_epoch")
        total_steps = epochs * steps_per_epoch
    if total_steps <= 0:
        raise AttributeValueError(f"OneCycleLR: total_steps must be at least 1, got {total_steps}")
    return total_steps


def _set_momentum(group: dict[str, Any], value: float) -> None:
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value
