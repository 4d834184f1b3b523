"""Adafactor (Shazeer and Stern 2018): Adam with the mean of squares factored into one mean per row and per column."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from graphc.base.errors import AttributeValueError
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.optim.optimizer import (
    Group,
    ImplementationOptions,
    Optimizer,
    State,
    is_zero,
    settings_of,
    step_counter,
    zeros_like,
)
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front


class Adafactor(Optimizer):
    """Steps relative to the size of the parameter, with ``lr`` as their upper limit.

    ``eps`` holds lower limits: of the root of squares (None: the precision of the element type) and of the parameter's
    size. ``d`` limits the update's root mean square. ``beta2_decay`` is the exponent of the step in the rate of the
    means.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **options: Unpack[ImplementationOptions],
    ):
        super().__init__(params, settings_of(locals()) | {"eps": tuple(eps)}, options)

    def check_group(self, group: Group) -> None:
        """Check the limits of the options."""
        super().check_group({name: value for name, value in group.items() if name != "eps"})
        low, size = group["eps"]
        if group["beta2_decay"] > 0 or group["d"] < 1 or size < 0 or (low is not None and low < 0):
            raise AttributeValueError(
                f"Adafactor: beta2_decay {group['beta2_decay']} must be at most 0, d {group['d']} at least 1, "
                f"eps {group['eps']} at least 0"
            )

    def init_state(self, param: Tensor) -> State:
        """Return the initial state: ``step``, and ``row_var`` and ``col_var`` for parameters of several dimensions,
        else ``variance``."""
        if len(param.shape) < 2:
            return {"step": step_counter(), "variance": zeros_like(param)}
        rows, columns = (*param.shape[:-1], 1), (*param.shape[:-2], 1, param.shape[-1])
        return {
            "step": step_counter(),
            "row_var": front().constant(np.zeros(rows, param.dtype.numpy)),
            "col_var": front().constant(np.zeros(columns, param.dtype.numpy)),
        }

    def update(self, param: Tensor, grad: Tensor, state: State, hyper: Group) -> tuple[Tensor, State]:
        """Compute a step (Shazeer and Stern 2018, algorithms 4 and 5)."""
        grad = -grad if hyper["maximize"] else grad
        low, smallest = hyper["eps"]
        low = float(np.finfo(param.dtype.numpy).eps) if low is None else low
        step = state["step"] + 1
        count = step.to(param.dtype)
        weight = mathematics.pow(count, hyper["beta2_decay"])
        rate = ew.minimum(mathematics.rsqrt(count), hyper["lr"]) * ew.maximum(_size(param), smallest)
        if not is_zero(hyper["weight_decay"]):
            param = param * (1.0 - hyper["lr"] * hyper["weight_decay"])
        square = grad * grad
        new_state = {"step": step}
        if len(param.shape) < 2:
            estimate = new_state["variance"] = _interpolated(state["variance"], square, weight)
        else:
            row = new_state["row_var"] = _interpolated(state["row_var"], square.mean(-1, keepdim=True), weight)
            column = new_state["col_var"] = _interpolated(state["col_var"], square.mean(-2, keepdim=True), weight)
            estimate = row * column / ew.maximum(row.mean(-2, keepdim=True), low)
        change = grad * mathematics.rsqrt(ew.maximum(estimate, low * low))
        limit = ew.maximum(_size(change) / hyper["d"], 1.0)
        return param - change * (rate / limit), new_state


def _interpolated(mean: Tensor, value: Tensor, weight: Tensor) -> Tensor:
    return mean + (value - mean) * weight


def _size(x: Tensor) -> Tensor:
    """Compute the root mean square of all elements."""
    return mathematics.sqrt((x * x).sum()) * (1.0 / math.sqrt(max(x.numel(), 1)))
