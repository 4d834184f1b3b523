"""GPUs, their memory, and synchronization: the functions of ``graphc.cuda``.

A device is an index, a name (``cuda:1``), or None for the first GPU. ``cuda-emu`` is the device that executes CUDA text
on the CPU. Without a GPU, its users raise DeviceError, which names the missing part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from graphc.base.device import device as device_of
from graphc.base.errors import ArgumentError, MemoryLimitError
from graphc.runtime import devices
from graphc.tensors.random import generator

__all__ = ["Event", "OutOfMemoryError", "Stream", "current_device", "current_stream", "default_stream", "device_count"]
__all__ += ["empty_cache", "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state"]
__all__ += ["get_rng_state_all", "init", "initial_seed", "ipc_collect", "is_available", "is_bf16_supported"]
__all__ += ["is_current_stream_capturing", "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated"]
__all__ += ["max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved", "reset_max_memory_allocated"]
__all__ += ["reset_peak_memory_stats", "seed", "seed_all", "set_device", "set_rng_state", "set_rng_state_all", "stream"]
__all__ += ["synchronize"]


def is_available() -> bool:
    """Return whether a usable GPU exists."""
    return devices.is_available()


def device_count() -> int:
    """Return the number of usable GPUs."""
    return devices.count()


def current_device() -> int:
    """Return the index of the GPU named ``cuda``: 0, the first one."""
    _device_of(None)
    return 0


def get_device_properties(device: Any = None) -> dict[str, Any]:
    """Return the properties of a device: name, architecture, memory."""
    return _device_of(device).properties()


def get_device_name(device: Any = None) -> str:
    """Return the name of a device."""
    return str(get_device_properties(device)["name"])


def memory_allocated(device: Any = None) -> int:
    """Return the bytes that tensors and programs hold now."""
    return _device_of(device).memory_stats().allocated


def max_memory_allocated(device: Any = None) -> int:
    """Return the maximum of ``memory_allocated`` since ``reset_peak_memory_stats``."""
    return _device_of(device).memory_stats().peak


def reset_peak_memory_stats(device: Any = None) -> None:
    """Reset ``max_memory_allocated`` to the bytes held now."""
    _device_of(device).reset_peak()


reset_max_memory_allocated = reset_peak_memory_stats


def memory_reserved(device: Any = None) -> int:
    """Return the bytes taken from the device, including those cached for the next tensors."""
    return _device_of(device).memory_stats().reserved


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the free bytes and the total bytes of the device."""
    stats = _device_of(device).memory_stats()
    return stats.total - stats.reserved, stats.total


def synchronize(device: Any = None) -> None:
    """Wait until all work of a device is done. Raise its errors."""
    _device_of(device).synchronize()


def empty_cache() -> None:
    """Return cached memory to the first GPU. Do nothing without a GPU."""
    if is_available():
        _device_of(None).release_cached()


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the major and minor compute capability of a GPU, (9, 0) for an H200."""
    _device_of(device)
    digits = str(get_device_properties(device)["capability"]).removeprefix("sm_").rstrip("af").replace(".", "")
    return int(digits[:-1]), int(digits[-1])


def manual_seed(seed: int) -> None:
    """Seed the random numbers of all devices; see ``graphc.manual_seed``."""
    generator.manual_seed(seed)


manual_seed_all = manual_seed
initial_seed, get_rng_state, set_rng_state = generator.initial_seed, generator.get_rng_state, generator.set_rng_state
seed = seed_all = generator.seed
OutOfMemoryError = MemoryLimitError


def current_accelerator(check_available: bool = False) -> device_of | None:
    """Return the device besides the CPU: ``device("cuda")`` where there is a GPU, else None."""
    return device_of("cuda") if is_available() else None


def set_device(device: Any) -> None:
    """Check that ``device`` is the first GPU, which ``cuda`` names. Raise ArgumentError for another one."""
    index = device if isinstance(device, int) else device_of(device).index or 0
    if index > 0:
        raise ArgumentError(f"cuda names the first GPU, not number {index}", remedy=f"pass device='cuda:{index}'")


current_device_index, set_device_index = current_device, set_device


def get_rng_state_all() -> list[Any]:
    """Return the random state, which all devices share, as a list."""
    return [generator.get_rng_state()]


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Set the random state to the last of several."""
    for state in new_states:
        generator.set_rng_state(state)


def is_current_stream_capturing() -> bool:
    """Return False: programs record their launches by themselves."""
    return False


def max_memory_reserved(device: Any = None) -> int:
    """Return the maximum of reserved bytes; see ``max_memory_allocated``. Memory is reserved when it is needed."""
    return max(max_memory_allocated(device), memory_reserved(device))


def is_initialized() -> bool:
    """Return whether a GPU is usable; no initialization is needed."""
    return is_available()


def init() -> None:
    """Do nothing: the first use of a GPU initializes it."""


def ipc_collect() -> None:
    """Do nothing: processes do not share memory of GPUs."""


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether programs for GPUs may use bf16; False without a GPU."""
    return is_available()


class Event:
    """A point in the order of a device's work."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, device: Any = None):
        self._device = device
        self._event: Any = None

    def record(self, stream: Any = None) -> None:
        """Mark the point after all work submitted so far."""
        self._event = _device_of(self._device).event()

    def query(self) -> bool:
        """Return whether all work before the event is done."""
        return self._event is None or self._event.is_done()

    def synchronize(self) -> None:
        """Wait for the event."""
        if self._event is not None:
            self._event.synchronize()

    def elapsed_time(self, end: Event) -> float:
        """Return the milliseconds from this event to a later one."""
        return end._event.milliseconds_since(self._event)


class Stream:
    """The order of a device's work. A device has one stream: all streams of a device are the same."""

    def __init__(self, device: Any = None, priority: int = 0):
        self._device = device
        _device_of(device)

    def synchronize(self) -> None:
        """Wait until all work is done."""
        synchronize(self._device)

    def record_event(self, event: Event | None = None) -> Event:
        """Return an event after all work submitted so far."""
        recorded = Event(device=self._device) if event is None else event
        recorded.record(self)
        return recorded

    def wait_event(self, event: Event) -> None:
        """Do nothing: later work runs after earlier work anyway."""

    def wait_stream(self, stream: Stream) -> None:
        """Wait for another device's work. Work of the same device needs no wait."""
        if str(_device_of(stream._device).name) != str(_device_of(self._device).name):
            stream.synchronize()


def current_stream(device: Any = None) -> Stream:
    """Return the stream of a device."""
    return Stream(device)


default_stream = current_stream


@contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """Run work on a stream inside the context; there is only one."""
    yield


def _device_of(device: Any) -> Any:
    if device is None:
        return devices.device_named("cuda")
    return devices.device_named(str(device_of(f"cuda:{device}" if isinstance(device, int) else device)))
