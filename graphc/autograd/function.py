"""PyTorch's import path of custom functions with their own gradient."""

from graphc.eager.function import Function, once_differentiable

__all__ = ["Function", "once_differentiable"]
