"""Which GPUs there are, their memory, and waiting for them: what ``graphc.cuda`` hands on.

A device is a number, a name (``cuda:1``), or None for the first GPU; ``cuda-emu`` is the device that executes CUDA text
on the CPU. What uses a GPU raises DeviceError, which says what is missing, where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from graphc.base.device import device as device_of
from graphc.base.errors import ArgumentError, MemoryLimitError
from graphc.runtime import devices
from graphc.tensors import generator


def is_available() -> bool:
    """Whether there is a GPU that can be used."""
    return devices.is_available()


def device_count() -> int:
    """How many GPUs can be used."""
    return devices.count()


def current_device() -> int:
    """The number of the GPU that ``cuda`` stands for: the first one."""
    _found(None)
    return 0


def get_device_properties(device: Any = None) -> dict[str, Any]:
    """What is known of a device: name, architecture, memory."""
    return _found(device).properties()


def get_device_name(device: Any = None) -> str:
    """The name of a device."""
    return str(get_device_properties(device)["name"])


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors and programs hold now."""
    return _found(device).memory_stats().allocated


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that they held at one time since ``reset_peak_memory_stats``."""
    return _found(device).memory_stats().peak


def reset_peak_memory_stats(device: Any = None) -> None:
    """Lets ``max_memory_allocated`` start at what is held now."""
    _found(device).reset_peak()


reset_max_memory_allocated = reset_peak_memory_stats


def memory_reserved(device: Any = None) -> int:
    """Bytes that were taken from the device, those for the next tensors included."""
    return _found(device).memory_stats().reserved


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes that are free, and all that the device has."""
    found = _found(device).memory_stats()
    return found.total - found.reserved, found.total


def synchronize(device: Any = None) -> None:
    """Waits until all work of a device is done; raises what went wrong there."""
    _found(device).synchronize()


def empty_cache() -> None:
    """Gives memory back to the first GPU that was taken for the next tensors; does nothing where there is no GPU."""
    if is_available():
        _found(None).release_cached()


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Major and minor number of what a GPU can do, (9, 0) for an H200."""
    _found(device)
    digits = str(get_device_properties(device)["capability"]).removeprefix("sm_").rstrip("af").replace(".", "")
    return int(digits[:-1]), int(digits[-1])


def manual_seed(seed: int) -> None:
    """As ``graphc.manual_seed``: random numbers are the same on all devices."""
    generator.manual_seed(seed)


manual_seed_all = manual_seed
initial_seed, get_rng_state, set_rng_state = generator.initial_seed, generator.get_rng_state, generator.set_rng_state
seed = seed_all = generator.seed
OutOfMemoryError = MemoryLimitError


def current_accelerator(check_available: bool = False) -> device_of | None:
    """The device besides the CPU: ``device("cuda")`` where there is a GPU, else None."""
    return device_of("cuda") if is_available() else None


def set_device(device: Any) -> None:
    """Raises ArgumentError for another device than the first GPU, for which ``cuda`` stands; does nothing for that."""
    index = device if isinstance(device, int) else device_of(device).index or 0
    if index > 0:
        raise ArgumentError(f"cuda stands for the first GPU, not for number {index}", remedy=f"device='cuda:{index}'")


current_device_index, set_device_index = current_device, set_device


def get_rng_state_all() -> list[Any]:
    """The state of random numbers, which is one for all devices, as a list."""
    return [generator.get_rng_state()]


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Sets it to the last of several."""
    for state in new_states:
        generator.set_rng_state(state)


def is_current_stream_capturing() -> bool:
    """False: programs record what they launch by themselves."""
    return False


def max_memory_reserved(device: Any = None) -> int:
    """As ``max_memory_allocated``: memory is reserved when it is needed."""
    return max(max_memory_allocated(device), memory_reserved(device))


def is_initialized() -> bool:
    """Whether a GPU can be used, since nothing has to be begun before."""
    return is_available()


def init() -> None:
    """Does nothing: what uses a GPU first begins with it."""


def ipc_collect() -> None:
    """Does nothing: memory of GPUs is not shared between processes."""


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether programs for GPUs may hold bf16; False where there is no GPU."""
    return is_available()


class Event:
    """A point in the order of a device's work."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, device: Any = None):
        self._device = device
        self._event: Any = None

    def record(self, stream: Any = None) -> None:
        """Marks the point behind all work asked for so far."""
        self._event = _found(self._device).event()

    def query(self) -> bool:
        """Whether all work before it is done."""
        return self._event is None or self._event.is_done()

    def synchronize(self) -> None:
        """Waits for it."""
        if self._event is not None:
            self._event.synchronize()

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to a later one."""
        return end._event.milliseconds_since(self._event)


class Stream:
    """The order in which a device works. A device has one: all streams of a device are the same."""

    def __init__(self, device: Any = None, priority: int = 0):
        self._device = device
        _found(device)

    def synchronize(self) -> None:
        """Waits until all work is done."""
        synchronize(self._device)

    def record_event(self, event: Event | None = None) -> Event:
        """An event behind all work asked for so far."""
        found = Event(device=self._device) if event is None else event
        found.record(self)
        return found

    def wait_event(self, event: Event) -> None:
        """Does nothing: what comes later is done later."""

    def wait_stream(self, stream: Stream) -> None:
        """Waits for another device's work; for that of this one nothing is to be done."""
        if str(_found(stream._device).name) != str(_found(self._device).name):
            stream.synchronize()


def current_stream(device: Any = None) -> Stream:
    """The stream of a device."""
    return Stream(device)


default_stream = current_stream


@contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """Inside, work is done on a stream: on the only one."""
    yield


def _found(device: Any) -> Any:
    if device is None:
        return devices.device_named("cuda")
    return devices.device_named(str(device_of(f"cuda:{device}" if isinstance(device, int) else device)))
