"""The import path that users know for custom functions with a gradient of their own."""

from graphc.eager.function import Function, once_differentiable

__all__ = ["Function", "once_differentiable"]
