"""Construction of modules and their memory formats, as in PyTorch; memory formats are hints without effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.base.memory_format import check_format
from graphc.nn.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format", "skip_init"]


def skip_init(module_cls: Callable[..., Module], *args: Any, **kwargs: Any) -> Module:
    """Construct the module as usual: the caller accepts any initial values, including the constructor's."""
    return module_cls(*args, **kwargs)


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Return the module unchanged: a memory format is only a hint. Raises ArgumentError for an unknown format."""
    check_format("convert_conv2d_weight_memory_format", memory_format)
    return module


convert_conv3d_weight_memory_format = convert_conv2d_weight_memory_format
