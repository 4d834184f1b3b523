"""Adagrad (Duchi et al. 2011), Adadelta (Zeiler 2012) and RMSprop: steps scaled by means of squared gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from graphc.base.errors import AttributeValueError
from graphc.ops.pointwise import math as mathematics
from graphc.optim.optimizer import (
    Group,
    ImplementationOptions,
    Optimizer,
    State,
    decayed_gradient,
    is_zero,
    settings_of,
    step_counter,
    zeros_like,
)
from graphc.tensors.tensor import Tensor


class RMSprop(Optimizer):
    """Gradient over the root of a running mean of its square; ``centered`` subtracts the squared mean gradient.

    Example:
        >>> import graphc as gc
        >>> weight = gc.tensor([1.0], requires_grad=True)
        >>> optimizer = gc.optim.RMSprop([weight], lr=0.1)
        >>> (weight**2).sum().backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
        >>> weight.grad is None
        True
    """

    schedulable = ("lr", "weight_decay", "momentum")
    optional_entries: ClassVar[Mapping[str, str | None]] = {
        "step": None,
        "momentum_buffer": "momentum",
        "grad_avg": "centered",
    }

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **options: Unpack[ImplementationOptions],
    ):
        super().__init__(params, settings_of(locals()), options)

    def init_state(self, param: Tensor) -> State:
        """Return the initial state: ``step`` and ``square_avg``, with momentum ``momentum_buffer``, if centered
        ``grad_avg``."""
        group = self.group_of(param)
        state = {"step": step_counter(), "square_avg": zeros_like(param)}
        if not is_zero(group["momentum"]):
            state["momentum_buffer"] = zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = zeros_like(param)
        return state

    def update(self, param: Tensor, grad: Tensor, state: State, hyper: Group) -> tuple[Tensor, State]:
        """Compute a step."""
        grad = decayed_gradient(param, grad, hyper)
        alpha = hyper["alpha"]
        square = state["square_avg"] * alpha + grad * grad * (1.0 - alpha)
        new_state = {"step": state["step"] + 1, "square_avg": square}
        if hyper["centered"]:
            mean = state["grad_avg"] * alpha + grad * (1.0 - alpha)
            new_state["grad_avg"] = mean
            square = square - mean * mean
        direction = grad / (mathematics.sqrt(square) + hyper["eps"])
        if not is_zero(hyper["momentum"]):
            direction = state["momentum_buffer"] * hyper["momentum"] + direction
            new_state["momentum_buffer"] = direction
        return param - direction * hyper["lr"], new_state


class Adadelta(Optimizer):
    """Gradient scaled by the ratio of two running means: of squared steps and of squared gradients."""

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **options: Unpack[ImplementationOptions],
    ):
        super().__init__(params, settings_of(locals()), options)

    def check_group(self, group: Group) -> None:
        """Check the options; ``rho`` must be in 0..1."""
        super().check_group(group)
        if not 0.0 <= group["rho"] <= 1.0:
            raise AttributeValueError(f"Adadelta: rho must be between 0 and 1, got {group['rho']}")

    def init_state(self, param: Tensor) -> State:
        """Return the initial state: ``step``, ``square_avg`` and ``acc_delta``."""
        return {"step": step_counter(), "square_avg": zeros_like(param), "acc_delta": zeros_like(param)}

    def update(self, param: Tensor, grad: Tensor, state: State, hyper: Group) -> tuple[Tensor, State]:
        """Compute a step (Zeiler 2012, algorithm 1)."""
        grad = decayed_gradient(param, grad, hyper)
        rho, eps = hyper["rho"], hyper["eps"]
        square = state["square_avg"] * rho + grad * grad * (1.0 - rho)
        delta = mathematics.sqrt(state["acc_delta"] + eps) / mathematics.sqrt(square + eps) * grad
        steps = state["acc_delta"] * rho + delta * delta * (1.0 - rho)
        return param - delta * hyper["lr"], {"step": state["step"] + 1, "square_avg": square, "acc_delta": steps}


class Adagrad(Optimizer):
    """Gradient divided by the root of the sum of its squares so far."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **options: Unpack[ImplementationOptions],
    ):
        super().__init__(params, settings_of(locals()), options)

    def init_state(self, param: Tensor) -> State:
        """Return the initial state: ``step`` and ``sum``."""
        start = self.group_of(param)["initial_accumulator_value"]
        return {"step": step_counter(), "sum": zeros_like(param) + start}

    def update(self, param: Tensor, grad: Tensor, state: State, hyper: Group) -> tuple[Tensor, State]:
        """Compute a step."""
        grad = decayed_gradient(param, grad, hyper)
        total = state["sum"] + grad * grad
        rate = hyper["lr"] / (state["step"].to(param.dtype) * hyper["lr_decay"] + 1.0)
        value = param - grad / (mathematics.sqrt(total) + hyper["eps"]) * rate
        return value, {"step": state["step"] + 1, "sum": total}
