"""Adamax (Kingma and Ba 2015, section 7.1)."""

from __future__ import annotations

from typing import Any, Unpack

from graphc.ops.pointwise import elementwise as ew
from graphc.optim.moments import Moments, bias_correction
from graphc.optim.optimizer import (
    Group,
    ImplementationOptions,
    State,
    decayed_gradient,
    settings_of,
    step_counter,
    zeros_like,
)
from graphc.tensors.tensor import Tensor


class Adamax(Moments):
    """Adam with the decayed maximum of the gradient's absolute value in place of the root mean square."""

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **options: Unpack[ImplementationOptions],
    ):
        super().__init__(params, settings_of(locals()), options)

    def init_state(self, param: Tensor) -> State:
        """Return the initial state: ``step``, ``exp_avg`` and ``exp_inf``."""
        return {"step": step_counter(), "exp_avg": zeros_like(param), "exp_inf": zeros_like(param)}

    def update(self, param: Tensor, grad: Tensor, state: State, hyper: Group) -> tuple[Tensor, State]:
        """Compute a step (algorithm 2)."""
        grad = decayed_gradient(param, grad, hyper)
        beta1, step = hyper["beta1"], state["step"] + 1
        mean = state["exp_avg"] * beta1 + grad * (1.0 - beta1)
        size = ew.maximum(state["exp_inf"] * hyper["beta2"], ew.abs(grad) + hyper["eps"])
        rate = hyper["lr"] / bias_correction(beta1, step.to(param.dtype))
        return param - mean / size * rate, {"step": step, "exp_avg": mean, "exp_inf": size}
