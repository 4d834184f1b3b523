"""Adadelta (Zeiler 2012)."""

from __future__ import annotations

from typing import Any, Unpack

from graphc.base.errors import AttributeValueError
from graphc.ops.pointwise import math as mathematics
from graphc.optim.optimizer import (
    Group,
    ImplementationOptions,
    Optimizer,
    State,
    decayed_gradient,
    settings_of,
    step_counter,
    zeros_like,
)
from graphc.tensors.tensor import Tensor


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
