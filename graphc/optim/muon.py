"""Muon (Jordan et al. 2024): momentum of matrices, orthogonalized before the step."""

from __future__ import annotations

import math
from typing import Any

from graphc.base.errors import AttributeValueError, ShapeError
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.optim.optimizer import Group, Optimizer, State, is_zero, settings_of, zeros_like
from graphc.tensors.tensor import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Coefficients of the polynomial of degree 5 that an iteration applies to the singular values."""
_ADJUSTMENTS = (None, "original", "match_rms_adamw")


class Muon(Optimizer):
    """Optimizer for the matrices of hidden layers; other parameters belong to an optimizer such as AdamW.

    ``ns_steps`` Newton-Schulz iterations bring the singular values of the momentum near 1, in the parameter's element
    type. ``adjust_lr_fn`` scales the rate by the shape: ``"original"`` (also None) by the root of rows over columns if
    above 1, ``"match_rms_adamw"`` to the step size of AdamW.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = COEFFICIENTS,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ):
        super().__init__(params, settings_of(locals()) | {"ns_coefficients": tuple(ns_coefficients)})

    def check_group(self, group: Group) -> None:
        """Check that all parameters are matrices, and the options."""
        super().check_group(group)
        for param in group["params"]:
            if len(param.shape) != 2:
                raise ShapeError(f"Muon optimizes matrices, not {list(param.shape)}", remedy="use AdamW for the others")
        if group["adjust_lr_fn"] not in _ADJUSTMENTS:
            raise AttributeValueError(f"Muon: adjust_lr_fn {group['adjust_lr_fn']!r} is not one of {_ADJUSTMENTS}")
        if len(group["ns_coefficients"]) != 3 or not 0 <= group["ns_steps"] < 100:
            raise AttributeValueError("Muon needs three ns_coefficients, and fewer than 100 ns_steps")

    def init_state(self, param: Tensor) -> State:
        """Return the initial state: ``momentum_buffer``."""
        return {"momentum_buffer": zeros_like(param)}

    def update(self, param: Tensor, grad: Tensor, state: State, hyper: Group) -> tuple[Tensor, State]:
        """Compute a step (Jordan et al. 2024)."""
        momentum, lr = hyper["momentum"], hyper["lr"]
        mean = state["momentum_buffer"] * momentum + grad * (1.0 - momentum)
        change = grad * (1.0 - momentum) + mean * momentum if hyper["nesterov"] else mean
        change = orthogonalized(change, hyper["ns_coefficients"], hyper["ns_steps"], hyper["eps"])
        if not is_zero(hyper["weight_decay"]):
            param = param * (1.0 - lr * hyper["weight_decay"])
        return param - change * (lr * _ratio(hyper["adjust_lr_fn"], param)), {"momentum_buffer": mean}


def _ratio(adjustment: str | None, param: Tensor) -> float:
    rows, columns = param.shape
    if adjustment == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1.0, rows / columns)) if columns else 1.0


def orthogonalized(x: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Return a matrix with the singular vectors of ``x`` and singular values near 1 (Newton-Schulz iterations)."""
    a, b, c = coefficients
    tall = x.shape[0] > x.shape[1]
    x = x.transpose(0, 1) if tall else x
    x = x / ew.maximum(mathematics.sqrt((x * x).sum()), eps)
    for _ in range(steps):
        gram = x @ x.transpose(0, 1)
        x = x * a + (gram * b + (gram @ gram) * c) @ x
    return x.transpose(0, 1) if tall else x
