"""PyTorch's import path for the device kind other than the CPU: GPUs."""

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

__all__ = ["current_accelerator", "current_device_index", "current_stream", "device_count", "empty_cache"]
__all__ += ["is_available", "set_device_index", "synchronize"]
