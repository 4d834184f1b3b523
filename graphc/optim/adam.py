"""Adam (Kingma and Ba 2015), AdamW (Loshchilov and Hutter 2019), Adamax, NAdam, RAdam; AMSGrad (Reddi et al. 2018)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.optim.moments import Moments, bias_correction, decayed, inverse_root
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
from graphc.tensors.tensor_base import front


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

    optional_entries: ClassVar[Mapping[str, str | None]] = {"max_exp_avg_sq": "amsgrad"}

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
