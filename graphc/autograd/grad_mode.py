"""PyTorch's import path of the context managers that switch the recording of operations."""

from graphc.tape.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
