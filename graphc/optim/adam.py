"""Adam and AdamW (Kingma and Ba 2015; Loshchilov and Hutter 2019), with AMSGrad (Reddi et al. 2018)."""

from __future__ import annotations

from typing import Any, Unpack

from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.optim.moments import Moments, bias_correction, inverse_root
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


class Adam(Moments):
    """Steps of size ``lr``, scaled by running means of the gradient and of its square.

    ``weight_decay`` is added to the gradient, or with ``decoupled_weight_decay`` subtracted from the parameter.
    ``amsgrad`` uses the largest mean of squares so far.

    Example:
        >>> import graphc as gc
        >>> weight = gc.tensor([1.0], requires_grad=True)
        >>> optimizer = gc.optim.Adam([weight], lr=0.1)
        >>> (weight**2).sum().backward()
        >>> optimizer.step()
        >>> weight
        tensor([0.9000], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
        **options: Unpack[ImplementationOptions],
    ):
        super().__init__(params, settings_of(locals()), options)

    def init_state(self, param: Tensor) -> State:
        """Return the initial state: ``step``, ``exp_avg``, ``exp_avg_sq``, and ``max_exp_avg_sq`` with amsgrad."""
        state = {"step": step_counter(), "exp_avg": zeros_like(param), "exp_avg_sq": zeros_like(param)}
        if self.group_of(param)["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(param)
        return state

    def update(self, param: Tensor, grad: Tensor, state: State, hyper: Group) -> tuple[Tensor, State]:
        """Compute a step (Kingma and Ba 2015, algorithm 1)."""
        lr, beta1, beta2 = hyper["lr"], hyper["beta1"], hyper["beta2"]
        if hyper["decoupled_weight_decay"]:
            grad = -grad if hyper["maximize"] else grad
            param = param - param * (hyper["weight_decay"] * lr)
        else:
            grad = decayed_gradient(param, grad, hyper)
        step = state["step"] + 1
        mean = state["exp_avg"] * beta1 + grad * (1.0 - beta1)
        square = state["exp_avg_sq"] * beta2 + grad * grad * (1.0 - beta2)
        new_state = {"step": step, "exp_avg": mean, "exp_avg_sq": square}
        largest = square
        if hyper["amsgrad"]:
            largest = ew.maximum(state["max_exp_avg_sq"], square)
            new_state["max_exp_avg_sq"] = largest
        count = step.to(param.dtype)
        root = mathematics.sqrt(largest) * inverse_root(bias_correction(beta2, count)) + hyper["eps"]
        return param - mean / root * (lr / bias_correction(beta1, count)), new_state


class AdamW(Adam):
    """Adam with weight decay subtracted from the parameter instead of added to the gradient.

    Example:
        >>> import graphc as gc
        >>> model = gc.nn.Linear(4, 2)
        >>> groups = [{"params": [model.weight], "weight_decay": 0.1}, {"params": [model.bias], "weight_decay": 0.0}]
        >>> optimizer = gc.optim.AdamW(groups, lr=1e-3)
        >>> [group["weight_decay"] for group in optimizer.param_groups]
        [0.1, 0.0]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **options: Unpack[ImplementationOptions],
    ):
        arguments: Any = {"maximize": maximize, "decoupled_weight_decay": True, **options}
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **arguments)
