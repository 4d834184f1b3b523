"""Automatic differentiation: the backward pass, grad modes, custom functions and gradient checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.lazy import exports

if TYPE_CHECKING:
    from graphc.autograd import forward_ad, functional, graph
    from graphc.autograd.engine import backward, grad
    from graphc.autograd.function import Function, Variable, once_differentiable
    from graphc.autograd.grad_mode import (
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
    from graphc.autograd.gradcheck import gradcheck, gradgradcheck
    from graphc.autograd.graph import GradientEdge, get_gradient_edge
    from graphc.autograd.node import Node

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
    "engine": ("backward", "grad"),
    "function": ("Function", "Variable", "once_differentiable"),
    "graph": ("GradientEdge", "get_gradient_edge"),
    "grad_mode": (
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
    "gradcheck": ("gradcheck", "gradgradcheck"),
    "node": ("Node",),
}
# Loaded at first use: modules of this package import tensors, which import the grad modes from here.
__getattr__ = exports(
    __name__,
    globals(),
    {name: f"{__name__}.{module}:{name}" for module, names in _MODULES.items() for name in names}
    | {name: f"{__name__}.{name}" for name in ("forward_ad", "functional", "graph")},
)
