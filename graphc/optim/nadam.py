"""NAdam: Adam with Nesterov's momentum (Dozat 2016)."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from graphc.ops.pointwise import math as mathematics
from graphc.optim.moments import Moments, bias_correction, decayed
from graphc.optim.optimizer import Group, ImplementationOptions, State, settings_of
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front


class NAdam(Moments):
    """Adam that looks one step of its momentum ahead; ``momentum_decay`` controls how the momentum grows."""

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **options: Unpack[ImplementationOptions],
    ):
        super().__init__(params, settings_of(locals()), options)

    def init_state(self, param: Tensor) -> State:
        """Return the initial state: ``step``, ``exp_avg``, ``exp_avg_sq``, and ``mu_product``, the product of all
        momenta so far."""
        return {**super().init_state(param), "mu_product": front().constant(np.ones((), np.float32))}

    def update(self, param: Tensor, grad: Tensor, state: State, hyper: Group) -> tuple[Tensor, State]:
        """Compute a step (Dozat 2016, algorithm 2, with the momentum schedule of its section 3)."""
        param, grad = decayed(param, grad, hyper)
        lr, beta1, beta2 = hyper["lr"], hyper["beta1"], hyper["beta2"]
        step = state["step"] + 1
        count = step.to(param.dtype)
        decay = math.log(0.96) * hyper["momentum_decay"]
        now = (1.0 - mathematics.exp(count * decay) * 0.5) * beta1
        later = (1.0 - mathematics.exp((count + 1.0) * decay) * 0.5) * beta1
        product = state["mu_product"] * now.to(state["mu_product"].dtype)
        mean = state["exp_avg"] * beta1 + grad * (1.0 - beta1)
        square = state["exp_avg_sq"] * beta2 + grad * grad * (1.0 - beta2)
        root = mathematics.sqrt(square / bias_correction(beta2, count)) + hyper["eps"]
        so_far = product.to(param.dtype)
        value = param - grad / root * ((1.0 - now) / (1.0 - so_far) * lr)
        value = value - mean / root * (later / (1.0 - so_far * later) * lr)
        return value, {"step": step, "exp_avg": mean, "exp_avg_sq": square, "mu_product": product}
