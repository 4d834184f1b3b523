"""Automatic differentiation: the backward pass, forward mode, grad modes and custom functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from graphc.base.lazy import exports, known_as

if TYPE_CHECKING:
    from graphc.autograd import forward_ad, functional, graph
    from graphc.autograd.engine import backward, grad
    from graphc.autograd.function import Function, Variable, once_differentiable
    from graphc.autograd.graph import GradientEdge, get_gradient_edge
    from graphc.tape.grad_mode import (
        detect_anomaly,
        enable_grad,
        inference_mode,
        is_anomaly_check_nan_enabled,
        is_anomaly_enabled,
        is_grad_enabled,
        is_inference_mode_enabled,
        no_grad,
        set_detect_anomaly,
        set_grad_enabled,
    )
    from graphc.tape.node import Node

    gradcheck: Callable[..., bool]
    gradgradcheck: Callable[..., bool]

__all__ = [
    "Function",
    "GradientEdge",
    "Node",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "get_gradient_edge",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "once_differentiable",
    "set_detect_anomaly",
    "set_grad_enabled",
]

_MODULES = {
    "graphc.autograd.engine": ("backward", "grad"),
    "graphc.autograd.function": ("Function", "Variable", "once_differentiable"),
    "graphc.autograd.graph": ("GradientEdge", "get_gradient_edge"),
    "graphc.tape.grad_mode": (
        "detect_anomaly",
        "is_anomaly_check_nan_enabled",
        "is_anomaly_enabled",
        "set_detect_anomaly",
        "enable_grad",
        "inference_mode",
        "is_grad_enabled",
        "is_inference_mode_enabled",
        "no_grad",
        "set_grad_enabled",
    ),
    "graphc.func.gradcheck": ("gradcheck", "gradgradcheck"),
    "graphc.tape.node": ("Node",),
}
# Imported at first use, to keep the import of graphc fast.
__getattr__ = exports(
    __name__,
    globals(),
    {name: f"{module}:{name}" for module, names in _MODULES.items() for name in names}
    | {name: f"{__name__}.{name}" for name in ("forward_ad", "function", "functional", "grad_mode", "graph")},
)
known_as(f"{__name__}.variable", __name__)
