"""Base of optimizers with two running means of gradients: decay rates, and corrections of the start at 0."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from graphc.base.errors import AttributeValueError
from graphc.ops.pointwise import math as mathematics
from graphc.optim.optimizer import Group, Optimizer, State, is_zero, step_counter, zeros_like
from graphc.tensors.tensor import Tensor


class Moments(Optimizer):
    """Base of optimizers with ``betas``, the decay rates of two running means."""

    schedulable: ClassVar[tuple[str, ...]] = ("lr", "weight_decay", "beta1")

    def check_group(self, group: Group) -> None:
        """Check the options; both betas must be in [0, 1)."""
        super().check_group(group)
        if not all(0.0 <= beta < 1.0 for beta in group["betas"]):
            raise AttributeValueError(f"{type(self).__name__}: betas {group['betas']} must be at least 0 and below 1")

    def hyper(self, group: Group) -> Group:
        """Return the numbers of a group with separate betas: schedules may change the first one."""
        numbers = super().hyper(group)
        numbers["beta1"], numbers["beta2"] = numbers.pop("betas")
        return numbers

    def number(self, group: Group, name: str) -> Any:
        """Return the current value of a schedulable number."""
        return group["betas"][0] if name == "beta1" else super().number(group, name)

    def init_state(self, param: Tensor) -> State:
        """Return the initial state: ``step``, ``exp_avg`` and ``exp_avg_sq``."""
        return {"step": step_counter(), "exp_avg": zeros_like(param), "exp_avg_sq": zeros_like(param)}


def decayed(param: Tensor, grad: Tensor, hyper: Group) -> tuple[Tensor, Tensor]:
    """Return parameter and gradient after weight decay: subtracted from the parameter with ``decoupled_weight_decay``,
    else added to the gradient. ``maximize`` negates the gradient."""
    grad = -grad if hyper["maximize"] else grad
    if hyper["decoupled_weight_decay"]:
        return param - param * (hyper["weight_decay"] * hyper["lr"]), grad
    return param, grad if is_zero(hyper["weight_decay"]) else grad + param * hyper["weight_decay"]


def bias_correction(beta: Any, step: Tensor) -> Any:
    """Compute ``1 - beta ** step`` for a number or a tensor, accurately also for small results."""
    if isinstance(beta, Tensor):
        return -mathematics.expm1(step * mathematics.log(beta))
    return 1.0 if beta == 0.0 else -mathematics.expm1(step * math.log(beta))


def inverse_root(value: Any) -> Any:
    """Compute 1 / sqrt of a number or a tensor."""
    return mathematics.rsqrt(value) if isinstance(value, Tensor) else value**-0.5
