"""The import path that users know for the switches that say whether operations are recorded."""

from graphc.tape.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
