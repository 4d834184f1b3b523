"""How modules are made and lie in memory: what PyTorch chooses here, and hints that change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.base.memory_format import check_format
from graphc.nn.module import Module


def skip_init(module_cls: Callable[..., Module], *args: Any, **kwargs: Any) -> Module:
    """A module whose parameters may have any values: those that its constructor gives."""
    return module_cls(*args, **kwargs)


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """The module as it is: a memory format is a hint. Raises ArgumentError for what is none."""
    check_format("convert_conv2d_weight_memory_format", memory_format)
    return module


convert_conv3d_weight_memory_format = convert_conv2d_weight_memory_format
