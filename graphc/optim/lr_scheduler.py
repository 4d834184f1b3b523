"""Schedules of the learning rate over steps or epochs."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from graphc.base.errors import AttributeValueError
from graphc.optim.cycles import CyclicLR, OneCycleLR
from graphc.optim.optimizer import Optimizer, refuse_trace
from graphc.optim.schedule import LRScheduler

__all__ = ["ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR"]
__all__ += ["ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR"]
__all__ += ["PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR"]


class LambdaLR(LRScheduler):
    """Initial rate times ``lr_lambda(epoch)``; one function, or one per group.

    Example:
        >>> import graphc as gc
        >>> optimizer = gc.optim.SGD(gc.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gc.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1):
        count = len(optimizer.param_groups)
        self.lr_lambdas: list[Callable[[int], float]] = (
            list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * count
        )
        if len(self.lr_lambdas) != count:
            raise AttributeValueError(f"{type(self).__name__}: {len(self.lr_lambdas)} functions for {count} groups")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the initial rates times the functions' values."""
        return [base * factor(self.last_epoch) for base, factor in zip(self.base_lrs, self.lr_lambdas, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Return the state as other schedules do, with the attributes of callable objects instead of the functions."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "lr_lambdas")}
        state["lr_lambdas"] = [dict(getattr(f, "__dict__", {})) for f in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state from ``state_dict``."""
        state = dict(state_dict)
        for factor, attributes in zip(self.lr_lambdas, state.pop("lr_lambdas"), strict=True):
            if attributes:
                factor.__dict__.update(attributes)
        self.__dict__.update(state)


class MultiplicativeLR(LambdaLR):
    """Current rate times ``lr_lambda(epoch)``."""

    def get_lr(self) -> list[float]:
        """Return the current rates times the functions' values."""
        if self.last_epoch == 0:
            return self._present()
        return [rate * factor(self.last_epoch) for rate, factor in zip(self._present(), self.lr_lambdas, strict=True)]


class StepLR(LRScheduler):
    """Rate times ``gamma`` every ``step_size`` epochs.

    Example:
        >>> import graphc as gc
        >>> optimizer = gc.optim.SGD(gc.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gc.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> rates = []
        >>> for epoch in range(5):
        ...     rates.append(optimizer.param_groups[0]["lr"])
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the current rates, times ``gamma`` at the start of each period."""
        starts = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return self._scaled(self.gamma if starts else 1.0)

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Rate times ``gamma`` at each of the epochs ``milestones``."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1):
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the current rates, times ``gamma`` at a milestone."""
        return self._scaled(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[float]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Initial rate times ``factor`` for the first ``total_iters`` epochs."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1):
        if not 0 <= factor <= 1:
            raise AttributeValueError(f"ConstantLR: factor {factor} is not between 0 and 1")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the current rates, reduced at the start and restored at the end."""
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        return self._scaled(1.0 / self.factor if self.last_epoch == self.total_iters else 1.0)

    def _get_closed_form_lr(self) -> list[float]:
        factor = self.factor if self.last_epoch < self.total_iters else 1.0
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Initial rate times a factor that changes linearly from ``start_factor`` to ``end_factor``, e.g. to warm up."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        if not 0 < start_factor <= 1:
            raise AttributeValueError(f"LinearLR: start_factor {start_factor} must be above 0 and at most 1")
        if not 0 <= end_factor <= 1:
            raise AttributeValueError(f"LinearLR: end_factor {end_factor} is not between 0 and 1")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        share = min(epoch, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * share

    def get_lr(self) -> list[float]:
        """Return the current rates, times the quotient of this factor and the previous one."""
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self.last_epoch > self.total_iters:
            return self._present()
        return self._scaled(self._factor(self.last_epoch) / self._factor(self.last_epoch - 1))

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self._factor(self.last_epoch) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Rate times ``gamma`` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the current rates times ``gamma``."""
        return self._scaled(self.gamma if self.last_epoch > 0 else 1.0)

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Initial rate times ``(1 - epoch / total_iters) ** power``, then 0."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the current rates, times the quotient of this factor and the previous one."""
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return self._present()
        before, now = (1.0 - e / self.total_iters for e in (self.last_epoch - 1, self.last_epoch))
        return self._scaled((now / before) ** self.power)

    def _get_closed_form_lr(self) -> list[float]:
        share = 1.0 - min(self.last_epoch, self.total_iters) / self.total_iters
        return [base * share**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate to ``eta_min`` in ``T_max`` epochs, and back (Loshchilov and Hutter 2017).

    Example:
        >>> import graphc as gc
        >>> optimizer = gc.optim.SGD(gc.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gc.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
        >>> optimizer.step()
        >>> schedule.step()
        >>> print(f"{schedule.get_last_lr()[0]:.3f}")
        0.500
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the rates, computed from the current ones, so that schedules combine."""
        if self.last_epoch == 0:
            return self._present()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [
                rate + (base - self.eta_min) * rise for base, rate in zip(self.base_lrs, self._present(), strict=True)
            ]
        now, before = (1 + math.cos(math.pi * e / self.T_max) for e in (self.last_epoch, self.last_epoch - 1))
        return [now / before * (rate - self.eta_min) + self.eta_min for rate in self._present()]

    def _get_closed_form_lr(self) -> list[float]:
        height = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Repeated half cosines: the first over ``T_0`` epochs, each next one ``T_mult`` times as long."""

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1):
        if T_0 <= 0 or T_mult < 1:
            raise AttributeValueError(f"CosineAnnealingWarmRestarts: T_0 {T_0} and T_mult {T_mult} must be 1 or more")
        self.T_0 = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _period(self) -> tuple[int, int]:
        """Return the epochs since the last restart, and the length of the current period."""
        since, length = self.last_epoch, self.T_0
        if self.T_mult == 1:
            return since % length, length
        while since >= length:
            since -= length
            length *= self.T_mult
        return since, length

    def get_lr(self) -> list[float]:
        """Return the rates of the epoch."""
        since, length = self._period()
        height = (1 + math.cos(math.pi * since / length)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]


class SequentialLR(LRScheduler):
    """Consecutive schedules: the next one starts, from its epoch 0, at each of the epochs ``milestones``."""

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ):
        if len(milestones) != len(schedulers) - 1:
            raise AttributeValueError(
                f"SequentialLR: {len(schedulers)} schedulers need {len(schedulers) - 1} milestones, got "
                f"{len(milestones)}"
            )
        if any(s.optimizer is not optimizer for s in schedulers):
            raise AttributeValueError("SequentialLR: all schedules need the same optimizer")
        self.optimizer = optimizer
        self._schedulers = list(schedulers)
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        # Every schedule set the rate on construction, so restart with the first one.
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for scheduler in self._schedulers:
            scheduler.last_epoch -= 1
        self._schedulers[0]._steps = 0
        self._schedulers[0].step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Run a step of the current schedule."""
        refuse_trace(f"{type(self).__name__}.step()")
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """Return the states of all schedules, and the position of this one."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state from ``state_dict``."""
        state = dict(state_dict)
        for scheduler, saved in zip(self._schedulers, state.pop("_schedulers"), strict=True):
            scheduler.load_state_dict(saved)
        self.__dict__.update(state)


class ChainedScheduler(LRScheduler):
    """Simultaneous schedules: each step is a step of all of them in turn."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        if not schedulers:
            raise AttributeValueError("ChainedScheduler needs at least one schedule")
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        if any(s.optimizer is not self.optimizer for s in schedulers):
            raise AttributeValueError("ChainedScheduler: all schedules need the same optimizer")
        self._schedulers = list(schedulers)
        self._last_lr = self._present()

    def step(self, epoch: int | None = None) -> None:
        """Run a step of every schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._present()

    state_dict = SequentialLR.state_dict
    load_state_dict = SequentialLR.load_state_dict


class ReduceLROnPlateau(LRScheduler):
    """Rate times ``factor`` after a metric, passed to ``step``, has not improved for more than ``patience`` epochs.

    Example:
        >>> import graphc as gc
        >>> optimizer = gc.optim.SGD(gc.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gc.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=1)
        >>> for loss in (3.0, 2.0, 2.0, 2.0):
        ...     schedule.step(loss)
        >>> optimizer.param_groups[0]["lr"]
        0.1
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0.0,
        eps: float = 1e-8,
    ):
        if factor >= 1.0:
            raise AttributeValueError(f"ReduceLROnPlateau: factor {factor} must be below 1")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise AttributeValueError(f"ReduceLROnPlateau: mode {mode!r}, threshold_mode {threshold_mode!r}")
        count = len(optimizer.param_groups)
        self.optimizer = optimizer
        self.min_lrs = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * count
        if len(self.min_lrs) != count:
            raise AttributeValueError(f"ReduceLROnPlateau: {len(self.min_lrs)} values of min_lr for {count} groups")
        self.mode = mode
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self.eps = eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = 0
        self.cooldown_counter = 0
        self.last_epoch = 0
        self._last_lr = self._present()

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Record the metric of an epoch, and reduce the rate if it has stopped improving."""
        refuse_trace(f"{type(self).__name__}.step()")
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._present()

    def _is_better(self, current: float) -> bool:
        sign = 1.0 if self.mode == "max" else -1.0
        if self.threshold_mode == "rel":
            return sign * current > sign * self.best * (1.0 + sign * self.threshold)
        return sign * current > sign * self.best + self.threshold

    def _reduce(self) -> None:
        for group, low in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
            rate = max(group["lr"] * self.factor, low)
            if group["lr"] - rate > self.eps:
                group["lr"] = rate
