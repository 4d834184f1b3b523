"""RMSprop (Hinton 2012), also centred and with momentum."""

from __future__ import annotations

from typing import Any, Unpack

from graphc.ops.pointwise import math as mathematics
from graphc.optim.optimizer import (
    Group,
    ImplementationOptions,
    Optimizer,
    State,
    decayed_gradient,
    is_zero,
    settings_of,
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
        """Return the initial state: ``square_avg``, ``momentum_buffer`` with momentum, ``grad_avg`` if centered."""
        group = self.group_of(param)
        state = {"square_avg": zeros_like(param)}
        if group["momentum"]:
            state["momentum_buffer"] = zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = zeros_like(param)
        return state

    def update(self, param: Tensor, grad: Tensor, state: State, hyper: Group) -> tuple[Tensor, State]:
        """Compute a step."""
        grad = decayed_gradient(param, grad, hyper)
        alpha = hyper["alpha"]
        square = state["square_avg"] * alpha + grad * grad * (1.0 - alpha)
        new_state = {"square_avg": square}
        if hyper["centered"]:
            mean = state["grad_avg"] * alpha + grad * (1.0 - alpha)
            new_state["grad_avg"] = mean
            square = square - mean * mean
        direction = grad / (mathematics.sqrt(square) + hyper["eps"])
        if not is_zero(hyper["momentum"]):
            direction = state["momentum_buffer"] * hyper["momentum"] + direction
            new_state["momentum_buffer"] = direction
        return param - direction * hyper["lr"], new_state
