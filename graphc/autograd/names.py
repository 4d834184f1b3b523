"""Names of the package that are loaded at first use, except those of higher floors."""

from graphc.autograd import forward_ad, function, functional, grad_mode, graph
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
