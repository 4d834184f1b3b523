"""Adagrad (Duchi et al. 2011)."""

from __future__ import annotations

from typing import Any, Unpack

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
