"""RAdam: Adam with a rectified start (Liu et al. 2020)."""

from __future__ import annotations

import math
from typing import Any, Unpack

from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.optim.moments import Moments, bias_correction, decayed
from graphc.optim.optimizer import Group, ImplementationOptions, State, settings_of
from graphc.tensors.tensor import Tensor


class RAdam(Moments):
    """Adam that starts scaling by squares once their running mean is reliable."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **options: Unpack[ImplementationOptions],
    ):
        super().__init__(params, settings_of(locals()), options)

    def update(self, param: Tensor, grad: Tensor, state: State, hyper: Group) -> tuple[Tensor, State]:
        """Compute a step (Liu et al. 2020, algorithm 2)."""
        param, grad = decayed(param, grad, hyper)
        beta1, beta2 = hyper["beta1"], hyper["beta2"]
        step = state["step"] + 1
        count = step.to(param.dtype)
        mean = state["exp_avg"] * beta1 + grad * (1.0 - beta1)
        square = state["exp_avg_sq"] * beta2 + grad * grad * (1.0 - beta2)
        rest = bias_correction(beta2, count)
        most = 2.0 / (1.0 - beta2) - 1.0
        length = most - count * 2.0 * mathematics.exp(count * math.log(beta2)) / rest
        enough = ew.gt(length, 5.0)
        safe = ew.where(enough, length, 6.0)
        rectifier = (safe - 4.0) * (safe - 2.0) * most / (safe * ((most - 4.0) * (most - 2.0)))
        scaled = mathematics.sqrt(rectifier * rest) / (mathematics.sqrt(square) + hyper["eps"])
        rate = hyper["lr"] / bias_correction(beta1, count)
        value = param - mean * ew.where(enough, scaled, 1.0) * rate
        return value, {"step": step, "exp_avg": mean, "exp_avg_sq": square}
