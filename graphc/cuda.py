"""The import path that users know for what concerns GPUs: which there are, their memory, waiting for them."""

from graphc.compiled.gpus import (
    Event,
    current_device,
    device_count,
    get_device_name,
    get_device_properties,
    is_available,
    manual_seed,
    manual_seed_all,
    max_memory_allocated,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    reset_peak_memory_stats,
    synchronize,
)

__all__ = [
    "Event",
    "current_device",
    "device_count",
    "get_device_name",
    "get_device_properties",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "synchronize",
]
