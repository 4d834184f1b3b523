"""ASGD: stochastic gradient descent with averaging (Polyak and Juditsky 1992)."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from graphc.base.dtypes import elements
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.optim.optimizer import (
    Group,
    ImplementationOptions,
    Optimizer,
    State,
    decayed_gradient,
    settings_of,
    step_counter,
)
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front


class ASGD(Optimizer):
    """Gradient descent with a decreasing rate; ``ax`` of the state is the mean of the parameter since step ``t0``."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **options: Unpack[ImplementationOptions],
    ):
        super().__init__(params, settings_of(locals()), options)

    def init_state(self, param: Tensor) -> State:
        """Return the initial state: ``step``, the rate ``eta``, the weight ``mu`` of the next parameter in the mean,
        the mean ``ax``."""
        rate = float(self.group_of(param)["lr"])
        return {
            "step": step_counter(),
            "eta": front().constant(elements(rate, param.dtype.real)),
            "mu": front().constant(elements(1, param.dtype.real)),
            "ax": front().constant(np.zeros(param.shape, param.dtype.numpy)),
        }

    def update(self, param: Tensor, grad: Tensor, state: State, hyper: Group) -> tuple[Tensor, State]:
        """Compute a step."""
        grad = decayed_gradient(param, grad, hyper)
        eta, mu = state["eta"], state["mu"]
        value = param * (1.0 - eta * hyper["lambd"]) - grad * eta
        mean = ew.where(ew.eq(mu, 1), value, state["ax"] + (value - state["ax"]) * mu)
        step = state["step"] + 1
        count = step.to(param.dtype)
        slowed = mathematics.pow(count * (hyper["lr"] * hyper["lambd"]) + 1.0, hyper["alpha"])
        weight = ew.reciprocal(ew.maximum(count - hyper["t0"], 1.0))
        return value, {"step": step, "eta": ew.div(hyper["lr"], slowed), "mu": weight, "ax": mean}
