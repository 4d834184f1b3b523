"""The import path of PyTorch for whichever kind of device there is besides the CPU: here GPUs."""

from graphc.calls.gpus import (
    current_accelerator,
    current_device_index,
    current_stream,
    device_count,
    empty_cache,
    is_available,
    set_device_index,
    synchronize,
)

__all__ = [
    "current_accelerator",
    "current_device_index",
    "current_stream",
    "device_count",
    "empty_cache",
    "is_available",
    "set_device_index",
    "synchronize",
]
