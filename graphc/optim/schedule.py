"""Base of schedules of the learning rate."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from graphc.base.errors import ArgumentError, AttributeValueError
from graphc.base.public import reduced
from graphc.optim.optimizer import Optimizer, refuse_trace


class LRScheduler:
    """Base of schedules: ``step()`` after each epoch (or batch) sets ``lr`` of every group to the rates of
    ``get_lr``."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"{type(self).__name__}: {type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise AttributeValueError(f"{type(self).__name__}: group {i} has no initial_lr to resume from")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._steps = 0
        self._last_lr: list[float] = []
        self.step()

    def get_lr(self) -> list[float]:
        """Return the learning rate of each group at ``last_epoch``, computed from the current one."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr")

    def get_last_lr(self) -> list[float]:
        """Return the rates set by the last step."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch, or to ``epoch`` if the schedule has a closed form. Raise TraceError in a compiled
        function."""
        refuse_trace(f"{type(self).__name__}.step()")
        self._steps += 1
        if self._steps == 2 and self.optimizer.step_count == 0:
            warnings.warn(
                "lr_scheduler.step() is called before the first optimizer.step(), so the first learning rate is never "
                "used; step the optimizer first",
                stacklevel=2,
            )
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = getattr(self, "_get_closed_form_lr", None)
        rates = self.get_lr() if epoch is None or closed is None else closed()
        self._set(rates)

    def _set(self, rates: Sequence[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = list(rates)

    def _present(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def _scaled(self, factor: float) -> list[float]:
        return [rate * factor for rate in self._present()]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduced(super().__reduce_ex__(max(2, protocol)))

    def __repr__(self) -> str:
        settings = {k: v for k, v in vars(self).items() if not k.startswith("_") and k != "base_lrs" and _is_plain(v)}
        shown = {"lr": self.get_last_lr(), **settings}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in shown.items())})"

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except the optimizer and functions."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer" and not callable(v)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state from ``state_dict``."""
        self.__dict__.update(state_dict)


def _is_plain(setting: Any) -> bool:
    """Return whether a setting is a number, a string or a short list of numbers, for the representation."""
    if isinstance(setting, (list, tuple)):
        return len(setting) <= 8 and all(isinstance(item, (int, float)) for item in setting)
    return isinstance(setting, (int, float, str))
